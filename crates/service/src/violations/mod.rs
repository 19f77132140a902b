//! Violations: denied requests by client, counted in memory and written behind to the database.
//!
//! A denial increments a count in memory ([`Violations`]) by client, rule and minute. Every few seconds the counts go
//! to the database ([`ViolationWriter`]). Neither delays a decision: what does not fit is dropped and counted, because
//! a flood of denials is exactly when a limiter must not be slowed by its own book-keeping.

mod at_rest;
mod client;
mod metrics;
mod tally;
#[cfg(test)]
mod tests;
mod writer;

pub use at_rest::{KeyHashing, is_digest};
pub(crate) use client::{ViolationClient, append_client_text, client_text};
pub use metrics::ViolationMetrics;
pub use tally::Violations;
pub use writer::{ViolationWriter, ViolationWriterConfig};
