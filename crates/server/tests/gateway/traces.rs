//! The decision of a gateway lies between the caller's span and those of the server behind it.

use crate::app::App;
use crate::collector::{CALLER, Collector, TRACE, hex, text};
use crate::rig::Rig;

const RULES: &str = "rules: [{ name: few, key_by: ip, limit: { requests: 1, window: 1d } }]";

#[tokio::test(flavor = "multi_thread")]
async fn the_decision_is_the_callers_child_and_the_servers_parent() {
    let (app, (url, collector)) = (App::start().await, Collector::start().await);
    let rig = Rig::with(RULES, |config, _| {
        config.gateway.upstream = vec![app.url()];
        config.signals.otlp_endpoint = Some(url);
        config.signals.otlp_sample = 0;
    });
    let fields = format!("Traceparent: 00-{TRACE}-{CALLER}-01\r\nTracestate: a=b\r\n");
    assert_eq!(rig.get_with("/x", &fields).await.status, 200);
    assert_eq!(rig.get_with("/x", &fields).await.status, 429);
    let unsampled = format!("Traceparent: 00-{TRACE}-{CALLER}-00\r\n");
    assert_eq!(rig.get_with("/x", &unsampled).await.status, 429);
    let spans = collector.spans(2).await;
    let outcomes: Vec<&str> = spans.iter().map(|span| text(&span.attributes, "tollgate.outcome")).collect();
    assert_eq!(outcomes, ["allow", "deny"], "only those that their caller records");
    for span in &spans {
        assert_eq!((hex(&span.trace_id), hex(&span.parent_span_id)), (TRACE.to_owned(), CALLER.to_owned()));
    }
    let head = app.seen().remove(0).to_lowercase();
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
    let expected = format!("00-{TRACE}-{}-01", hex(&spans[0].span_id));
    assert_eq!((field("traceparent: "), field("tracestate: ")), (Some(expected), Some("a=b".to_owned())));
}
