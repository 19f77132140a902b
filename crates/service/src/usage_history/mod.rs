//! The history of usage: what was used of every quota, by bucket and period, written behind to the database.
//!
//! A charge on a quota notes the usage that the store answered with ([`UsageTracker`]); a refund notes that the bucket
//! must be read again. Every few seconds a task reads those buckets and writes what the store said
//! ([`UsageWriter`]), with the time of the store: rows are readings and never sums, so several nodes, restarts and
//! repeated writes count nothing twice. No decision waits for it; what does not fit is counted in a metric and written
//! when the bucket is next charged.

mod metrics;
mod reading;
#[cfg(test)]
mod tests;
mod tracker;
mod writer;

pub use metrics::UsageHistoryMetrics;
pub use tracker::UsageTracker;
pub use writer::{UsageWriter, UsageWriterConfig};
