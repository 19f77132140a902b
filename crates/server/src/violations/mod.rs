//! Who was refused: counted beside the decisions, written down behind them.
//!
//! A refusal adds one to a count in memory ([`Violations`]), by client, rule and minute. Every few seconds what was
//! counted goes to the database ([`Scribe`]). Neither ever holds up a decision: what does not fit is dropped and
//! counted, because a flood of refusals is exactly when a limiter must not fall over its own book-keeping.

mod at_rest;
mod client;
mod scribe;
mod tally;
#[cfg(test)]
mod tests;

pub(crate) use at_rest::{AtRest, is_digest};
pub use scribe::{Scribe, ScribeConfig};
pub use tally::Violations;
