//! Spans and metrics as a collector gets them, read with the messages of opentelemetry-proto.

use opentelemetry_proto::tonic::metrics::v1::metric::Data;

use crate::collector::{CALLER, Collector, TRACE, hex, text};
use crate::rig::Rig;

const RULES: &str = "
key_by: client_key
rules:
  - { name: few, limit: { requests: 1, window: 1d } }
";

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_a_span_of_its_callers_trace() {
    let (url, collector) = Collector::start().await;
    let rig = Rig::with(RULES, |config, _| {
        config.signals.otlp_endpoint = Some(url);
        config.signals.otlp_sample = 0;
    });
    let check = async |parent: &str| {
        let fields = format!("Content-Type: application/json\r\n{parent}");
        let answer = rig.call("POST", "/v1/check", &fields, r#"{"client_key":"user:1"}"#).await;
        assert_eq!(answer.status, 200, "{}", answer.head);
    };
    check(&format!("traceparent: 00-{TRACE}-{CALLER}-01\r\n")).await;
    check(&format!("Traceparent: 00-{TRACE}-{CALLER}-01\r\n")).await;
    for garbage in [
        String::new(),
        format!("traceparent: 00-{TRACE}-{CALLER}-00\r\n"), // its caller does not record it
        "traceparent: \u{1}garbage\r\n".replace('\u{1}', ""),
        format!("traceparent: 00-{TRACE}-{CALLER}-01\r\ntraceparent: 00-{TRACE}-{CALLER}-01\r\n"),
        format!("traceparent: {}\r\n", "f".repeat(4000)),
    ] {
        check(&garbage).await;
    }
    let batch = format!(r#"{{"requests":[{0},{0}]}}"#, r#"{"client_key":"user:2"}"#);
    let fields = format!("Content-Type: application/json\r\ntraceparent: 00-{TRACE}-{CALLER}-01\r\n");
    assert_eq!(rig.call("POST", "/v1/check/batch", &fields, &batch).await.status, 200);
    let spans = collector.spans(4).await;
    assert_eq!(spans.len(), 4, "only those that their caller records");
    let outcomes: Vec<&str> = spans.iter().map(|span| text(&span.attributes, "tollgate.outcome")).collect();
    assert_eq!(outcomes, ["allow", "deny", "allow", "deny"]);
    for span in &spans {
        assert_eq!((hex(&span.trace_id), hex(&span.parent_span_id)), (TRACE.to_owned(), CALLER.to_owned()));
        assert_eq!((span.span_id.len(), span.name.as_str()), (8, "tollgate.decide"));
        assert_eq!(text(&span.attributes, "tollgate.rule"), "few");
        assert_eq!(text(&span.attributes, "tollgate.mode"), "store");
        assert!(0 < span.start_time_unix_nano && span.start_time_unix_nano <= span.end_time_unix_nano);
    }
    let mut ids: Vec<&[u8]> = spans.iter().map(|span| span.span_id.as_slice()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4, "each has its own id");
    rig.end().await;
    let metrics = collector.metrics.lock();
    let scopes = metrics.last().expect("metrics at the end").resource_metrics.iter().flat_map(|one| &one.scope_metrics);
    let found = scopes.flat_map(|scope| &scope.metrics).find(|metric| metric.name == "tollgate_requests_denied");
    let Some(Data::Sum(sum)) = &found.expect("denials").data else { panic!("a sum") };
    assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
    assert_eq!(text(&sum.data_points[0].attributes, "rule"), "few");
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_begin_here_by_chance_and_a_dead_collector_delays_nothing() {
    let (url, collector) = Collector::start().await;
    let all = Rig::with(RULES, |config, _| {
        config.signals.otlp_endpoint = Some(url);
        config.signals.otlp_sample = 100;
    });
    for _ in 0..5 {
        all.post("/v1/check", r#"{"client_key":"user:1"}"#).await;
    }
    let spans = collector.spans(5).await;
    assert!(spans.iter().all(|span| span.trace_id.len() == 16 && span.parent_span_id.is_empty()));
    let dead = Rig::with(RULES, |config, _| {
        config.signals.otlp_endpoint = Some("http://127.0.0.1:1".to_owned());
        config.signals.otlp_sample = 100;
    });
    for _ in 0..20 {
        assert_eq!(dead.post("/v1/check", r#"{"client_key":"user:1"}"#).await.status, 200);
    }
    dead.end().await;
}
