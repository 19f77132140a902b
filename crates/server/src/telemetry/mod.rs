//! What the server tells about itself: its log, the log of decisions, and metrics.
//!
//! Nothing here may hold up a decision. Lines go into a bounded buffer that a thread empties ([`Lines`]); counts go into
//! atomics that only a scrape adds up ([`Metrics`]). What does not fit is dropped and counted.

mod counter;
mod decisions;
mod domains;
mod escape;
mod exposition;
mod fleet;
mod latency;
mod lines;
mod log;
mod metrics;
mod observer;
mod page;
mod process;
mod quiet;
mod resp;
mod scrape;
mod series;
mod stamp;

pub use decisions::{DecisionLog, DecisionLogConfig, Keys};
pub use domains::{CallEnd, Calls, Domains, Sight};
pub use exposition::Exposition;
pub use fleet::{Distribution, OwnFigures, ShardFigures, ShardState, StoreFigures};
pub use lines::{Lines, Sink};
pub use log::{Colours, Format, LogConfig};
pub use metrics::{Metrics, Refusal};
pub use observer::Telemetry;
pub use quiet::{All, Quiet};
pub use resp::{RespCounts, RespFault};
pub use scrape::{Scrape, ScrapeConfig};
