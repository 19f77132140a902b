//! Metrics and logs.
//!
//! Nothing here delays a decision. Log lines go into a bounded buffer that a thread writes out ([`Lines`]); counts go
//! into striped atomics that only a scrape sums ([`Counter`]). Lines beyond the bound are dropped and counted.
//!
//! Decisions are counted here ([`DecisionMetrics`]). Every other crate has its own metrics, implements
//! [`MetricFamilies`] and is registered with the [`Scrape`] by the server: a transport's metrics live beside the
//! transport.

mod correction_lines;
mod counter;
mod decision_log;
mod escape;
mod exposition;
mod histogram;
mod json_fields;
mod latency;
mod lines;
mod log;
mod log_throttle;
mod metrics;
mod page;
mod process;
mod rls_stats;
mod scrape;
mod series;
mod spans;
mod store_figures;
mod timestamp;

pub use counter::Counter;
pub use decision_log::{ClientDigests, DecisionLog, DecisionLogConfig, LoggedKeys};
pub use escape::json_string;
pub use exposition::Exposition;
pub use histogram::HistogramFigures;
pub use lines::{Lines, Sink};
pub use log::{Colours, Format, LogConfig};
pub use log_throttle::{LogThrottle, Periods};
pub use metrics::DecisionMetrics;
pub use page::{MetricFamilies, MetricsPage};
pub use process::{PanicCounter, ProcessFamilies};
pub use rls_stats::{RlsCallEnd, RlsCalls, RlsObservation, RlsStats};
pub use scrape::{MetricNames, Scrape};
pub use series::OTHER;
pub use spans::{DecisionSpan, SpanQueue};
pub use store_figures::{NodeFigures, ShardFigures, ShardState, StoreFamilies, StoreFigures, StoreReading};
pub use timestamp::{common_log_time, rfc3339};
