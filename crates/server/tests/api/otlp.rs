//! Spans and metrics as a collector gets them, read with the messages of opentelemetry-proto.

use std::sync::Arc;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tollgate_lab::patience::eventually;

use crate::rig::Rig;

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(40);
const RULES: &str = "
key_by: client_key
rules:
  - { name: few, limit: { requests: 1, window: 1d } }
";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// Keeps what is posted to it.
#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<Span>>>,
    metrics: Arc<Mutex<Vec<ExportMetricsServiceRequest>>>,
}

impl Collector {
    async fn start() -> (String, Collector) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (url, collector) = (format!("http://{}", listener.local_addr().expect("an address")), Collector::default());
        let kept = collector.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (mut bytes, mut part) = (Vec::new(), [0; 16 << 10]);
                let (head, body) = loop {
                    let count = stream.read(&mut part).await.expect("bytes");
                    assert!(count > 0, "the exporter left");
                    bytes.extend(&part[..count]);
                    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
                    let head = String::from_utf8(bytes[..end].to_vec()).expect("a head");
                    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                    let length: usize = length.expect("a length").parse().expect("a number");
                    if bytes.len() == end + 4 + length {
                        break (head, bytes.split_off(end + 4));
                    }
                };
                assert!(head.contains("content-type: application/x-protobuf"), "{head}");
                match head.split(' ').nth(1) {
                    Some("/v1/traces") => {
                        let message = ExportTraceServiceRequest::decode(&body[..]).expect("a message");
                        let scopes = message.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
                        kept.spans.lock().extend(scopes.flat_map(|scope| scope.spans));
                    }
                    Some("/v1/metrics") => {
                        let message = ExportMetricsServiceRequest::decode(&body[..]).expect("a message");
                        kept.metrics.lock().push(message);
                    }
                    other => panic!("posted to {other:?}"),
                }
                let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                stream.write_all(reply).await.expect("an exporter");
            }
        });
        (url, collector)
    }

    async fn spans(&self, count: usize) -> Vec<Span> {
        eventually("spans", PATIENCE, async || Some(self.spans.lock().clone()).filter(|spans| spans.len() >= count))
            .await
    }
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> &'a str {
    let found = attributes.iter().find(|attribute| attribute.key == key).and_then(|one| one.value.as_ref());
    match found.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text,
        other => panic!("{key} is {other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

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
