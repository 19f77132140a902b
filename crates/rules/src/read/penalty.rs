//! Reads `penalty`.

use super::field::FieldValue;
use crate::problem::Problems;
use crate::spec::PenaltySpec;

/// Fields of a penalty, in canonical order.
pub(crate) const PENALTY_FIELDS: &[&str] = &["after", "within", "block", "growth", "max"];

const EXAMPLE: &str = "penalty: { after: 100, within: 1m, block: 10m }";

/// From a millisecond to thirty days.
const SPANS_NS: std::ops::RangeInclusive<u64> = 1_000_000..=30 * 86_400_000_000_000;
/// Highest growth.
const GROWTH_MAX: u64 = 100;

/// Reads the map under `penalty`; `None` after a problem.
pub(super) fn read_penalty(value: FieldValue<'_>, problems: &mut Problems) -> Option<PenaltySpec> {
    let fields = value.fields(PENALTY_FIELDS, EXAMPLE, problems);
    let help = format!("write for example `{EXAMPLE}`");
    let after = fields.required("after", &help, problems);
    let after = after.and_then(|value| value.integer(1..=PenaltySpec::AFTER_MAX, problems));
    let within = fields.required("within", &help, problems).and_then(|value| value.duration(SPANS_NS, problems));
    let block = fields.required("block", &help, problems).and_then(|value| value.duration(SPANS_NS, problems));
    let growth = fields.get("growth").map_or(Some(1), |value| value.integer(1..=GROWTH_MAX, problems));
    let max = fields.get("max").map(|value| (value, value.duration(SPANS_NS, problems)));
    let (after, within_ns, block_ns, growth) = (after?, within?, block?, growth?);
    if block_ns < within_ns {
        let message = format!("{} is shorter than `within`", fields.value.path);
        problems.push(
            value
                .problem("out-of-range", message)
                .help("make `block` at least as long as `within`: denials before a penalty must not bring the next"),
        );
        return None;
    }
    let max_ns = match max {
        None => PenaltySpec::MAX_NS.max(block_ns),
        Some((value, Some(max))) if max < block_ns => {
            let message = format!("{} is shorter than `block`", value.path);
            problems.push(value.problem("out-of-range", message).help("the longest penalty is at least the first"));
            return None;
        }
        Some((_, max)) => max?,
    };
    Some(PenaltySpec { after, within_ns, block_ns, growth, max_ns })
}
