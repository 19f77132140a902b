//! Reads the protection of an upstream from YAML, with the errors of rules files.
//!
//! ```yaml
//! priorities: [critical, default, sheddable, test]        # the most important first
//! concurrency: { algorithm: gradient, min: 3, max: 200 }  # or a number: a limit that does not move
//! queue: { max: 100, max_wait: 500ms, overload: codel }
//! shed: { reserved: 20%, good: 70%, bad: 80% }
//! retries: { attempts: 1, budget: 10% }
//! breaker: { failures: 10, ratio: 50%, open: 1s }
//! throttle: { k: 2 }
//! ejection: { after: 5, for: 5s, max: 5m, share: 50% }
//! ```
//!
//! Each function reads one of these values. What is left out has its default; every mistake is reported, and the value
//! that is returned then is only there so that reading continues.

mod concurrency;
mod failure;
mod priorities;
mod queue;
mod retries;
mod shed;
#[cfg(test)]
mod tests;

use tollgate_core::Span;
use tollgate_rules::problem::Problems;
use tollgate_rules::read::MapFields;

pub use concurrency::read_concurrency;
pub use failure::{read_breaker, read_ejection, read_throttle};
pub use priorities::{read_priorities, read_priority};
pub use queue::read_queue;
pub use retries::{RetrySpec, read_retries};
pub use shed::{ShedSpec, read_shed};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const DAY: u64 = 86_400 * SECOND;

/// Sets a number that is given.
fn set_number(
    target: &mut u32,
    fields: &MapFields<'_>,
    name: &'static str,
    range: std::ops::RangeInclusive<u32>,
    problems: &mut Problems,
) {
    let range = u64::from(*range.start())..=u64::from(*range.end());
    let number = fields.get(name).and_then(|value| value.integer(range, problems));
    if let Some(number) = number.and_then(|number| u32::try_from(number).ok()) {
        *target = number;
    }
}

/// Sets a percentage that is given.
fn set_percent(
    target: &mut u32,
    fields: &MapFields<'_>,
    name: &'static str,
    range: std::ops::RangeInclusive<u32>,
    problems: &mut Problems,
) {
    if let Some(percent) = fields.get(name).and_then(|value| value.percent(range, problems)) {
        *target = percent;
    }
}

/// Sets a span that is given.
fn set_span(
    target: &mut Span,
    fields: &MapFields<'_>,
    name: &'static str,
    range: std::ops::RangeInclusive<u64>,
    problems: &mut Problems,
) {
    if let Some(nanos) = fields.get(name).and_then(|value| value.duration(range, problems)) {
        *target = Span::from_nanos(nanos);
    }
}

/// Reports that one field must not be above another.
fn above(fields: &MapFields<'_>, low: &str, high: &str, problems: &mut Problems) {
    let message = format!("{}: `{low}` is above `{high}`", fields.value.path);
    let help = format!("write a `{low}` up to `{high}`; what is left out has its default");
    problems.push(fields.value.problem("out-of-range", message).help(help));
}
