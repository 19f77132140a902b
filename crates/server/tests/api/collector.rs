//! A collector of OpenTelemetry, as small as one can be.

use std::sync::Arc;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tollgate_lab::patience::eventually;

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(40);
/// The trace of a caller, and its span.
pub const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
pub const CALLER: &str = "b7ad6b7169203331";

/// Keeps what is posted to it.
#[derive(Clone, Default)]
pub struct Collector {
    spans: Arc<Mutex<Vec<Span>>>,
    pub metrics: Arc<Mutex<Vec<ExportMetricsServiceRequest>>>,
}

impl Collector {
    /// Its URL, and what it keeps.
    pub async fn start() -> (String, Collector) {
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

    /// The spans, once there are so many.
    pub async fn spans(&self, count: usize) -> Vec<Span> {
        eventually("spans", PATIENCE, async || Some(self.spans.lock().clone()).filter(|spans| spans.len() >= count))
            .await
    }
}

/// The text of an attribute.
pub fn text<'a>(attributes: &'a [KeyValue], key: &str) -> &'a str {
    let found = attributes.iter().find(|attribute| attribute.key == key).and_then(|one| one.value.as_ref());
    match found.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text,
        other => panic!("{key} is {other:?}"),
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
