//! The messages of OTLP 1.x, as much of them as is sent. Numbers are those of opentelemetry-proto.

use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportTraces {
    #[prost(message, repeated, tag = "1")]
    pub(crate) resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(crate) resource: Option<OtlpResource>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(crate) scope: Option<OtlpScope>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) spans: Vec<OtlpSpan>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OtlpSpan {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(crate) name: String,
    /// 1 is internal.
    #[prost(int32, tag = "6")]
    pub(crate) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(crate) start_ns: u64,
    #[prost(fixed64, tag = "8")]
    pub(crate) end_ns: u64,
    #[prost(message, repeated, tag = "9")]
    pub(crate) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OtlpResource {
    #[prost(message, repeated, tag = "1")]
    pub(crate) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OtlpScope {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnyValue {
    #[prost(oneof = "AnyValueKind", tags = "1, 2, 3")]
    pub(crate) kind: Option<AnyValueKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum AnyValueKind {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Flag(bool),
    #[prost(int64, tag = "3")]
    Whole(i64),
}

impl KeyValue {
    pub(crate) fn text(key: &str, value: &str) -> KeyValue {
        KeyValue::of(key, AnyValueKind::Text(value.to_owned()))
    }

    pub(crate) fn of(key: &str, kind: AnyValueKind) -> KeyValue {
        KeyValue { key: key.to_owned(), value: Some(AnyValue { kind: Some(kind) }) }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportMetrics {
    #[prost(message, repeated, tag = "1")]
    pub(crate) resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    pub(crate) resource: Option<OtlpResource>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    pub(crate) scope: Option<OtlpScope>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Metric {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) description: String,
    #[prost(oneof = "MetricData", tags = "5, 7, 9")]
    pub(crate) data: Option<MetricData>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum MetricData {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
    #[prost(message, tag = "9")]
    Histogram(OtlpHistogram),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Gauge {
    #[prost(message, repeated, tag = "1")]
    pub(crate) points: Vec<NumberPoint>,
}

/// Cumulative since the start.
pub(crate) const CUMULATIVE: i32 = 2;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Sum {
    #[prost(message, repeated, tag = "1")]
    pub(crate) points: Vec<NumberPoint>,
    #[prost(int32, tag = "2")]
    pub(crate) temporality: i32,
    #[prost(bool, tag = "3")]
    pub(crate) is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NumberPoint {
    #[prost(fixed64, tag = "2")]
    pub(crate) start_ns: u64,
    #[prost(fixed64, tag = "3")]
    pub(crate) time_ns: u64,
    /// A member of a oneof: present even if it is zero.
    #[prost(double, optional, tag = "4")]
    pub(crate) value: Option<f64>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OtlpHistogram {
    #[prost(message, repeated, tag = "1")]
    pub(crate) points: Vec<HistogramPoint>,
    #[prost(int32, tag = "2")]
    pub(crate) temporality: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HistogramPoint {
    #[prost(fixed64, tag = "2")]
    pub(crate) start_ns: u64,
    #[prost(fixed64, tag = "3")]
    pub(crate) time_ns: u64,
    #[prost(fixed64, tag = "4")]
    pub(crate) count: u64,
    #[prost(double, optional, tag = "5")]
    pub(crate) sum: Option<f64>,
    #[prost(fixed64, repeated, tag = "6")]
    pub(crate) counts: Vec<u64>,
    #[prost(double, repeated, tag = "7")]
    pub(crate) bounds: Vec<f64>,
    #[prost(message, repeated, tag = "9")]
    pub(crate) attributes: Vec<KeyValue>,
}
