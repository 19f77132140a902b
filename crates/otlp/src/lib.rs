//! OpenTelemetry: decisions as spans, and the metrics page, by OTLP over HTTP.
//!
//! A decision that is sampled leaves one small [`DecisionSpan`](tollgate_telemetry::DecisionSpan) in a bounded queue ([`SpanQueue`](tollgate_telemetry::SpanQueue)); one that is not
//! leaves nothing, and costs one comparison. A task encodes what has come together every few seconds and posts it. What
//! the collector does not take is dropped and counted: telemetry never waits, and never holds a decision.
//!
//! The messages are written by hand for prost, as much of them as is sent. The SDK of OpenTelemetry would bring a second
//! pipeline of metrics, an HTTP client and its own tasks beside those that are here already.

mod exporter;
mod messages;
mod metrics;
mod spans;

pub use exporter::{OtlpExporter, OtlpExporterConfig};
pub use metrics::OtlpMetrics;
