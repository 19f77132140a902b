//! The bodies of the fuzz targets, also called by the replay of their corpus: bytes in, a panic if a promise is broken.

mod addresses;
mod calendars;
mod envoy;
mod graphql;
mod keys;
mod paths;
mod scalars;
mod spelling;
mod usage;
mod yaml;

use tollgate_core::LimitKind;

use crate::oracle::{Scenario, play, play_together};
use crate::subject_kind::SubjectKind;

pub use addresses::addresses;
pub use calendars::calendars;
pub use envoy::envoy_config;
pub use graphql::graphql_cost;
pub use keys::key_builder;
pub use paths::paths;
pub use scalars::durations;
pub use usage::sse_usage;
pub use yaml::yaml_rules;

/// Every algorithm, in the order in which a first byte chooses it.
const KINDS: [LimitKind; 7] = [
    LimitKind::Gcra,
    LimitKind::Queue,
    LimitKind::FixedWindow,
    LimitKind::SlidingLog,
    LimitKind::SlidingCounter,
    LimitKind::Concurrency,
    LimitKind::Quota,
];

/// Steps beyond this are ignored: the checks of one step look at all steps before.
const STEPS_MAX: usize = 300;

/// A byte for the algorithm, eight for its numbers, then four for each step; missing ones are zero.
pub fn decision_sequence(data: &[u8]) {
    let (kind, rest) = data.split_first().unwrap_or((&0, &[]));
    let (head, rest) = rest.split_at(rest.len().min(8));
    let mut numbers = [0; 8];
    numbers[..head.len()].copy_from_slice(head);
    let words = rest.chunks(4).take(STEPS_MAX).map(|bytes| {
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        u32::from_le_bytes(word)
    });
    let words: Vec<u32> = words.collect();
    let scenario = Scenario::decode(KINDS[usize::from(*kind) % KINDS.len()], numbers, &words);
    if let Err(broken) = play(&scenario) {
        panic!("{broken}");
    }
}

/// A byte for the shadow charges, a byte and eight for each of three limits, then twelve for each request; missing bytes
/// are zero. Every store must answer as the reference does.
pub fn requests_together(data: &[u8]) {
    let byte = |place: usize| data.get(place).copied().unwrap_or(0);
    let (limits, size) = (3, 12);
    let requests = data.len().saturating_sub(1 + 9 * limits).div_ceil(size).min(STEPS_MAX);
    let scenarios = (0..limits).map(|limit| {
        let head = 1 + 9 * limit;
        let numbers = std::array::from_fn(|place| byte(head + 1 + place));
        let word = |request: usize| {
            let at = 1 + 9 * limits + request * size + 4 * limit;
            u32::from_le_bytes(std::array::from_fn(|place| byte(at + place)))
        };
        let words: Vec<u32> = (0..requests).map(word).collect();
        Scenario::decode(KINDS[usize::from(byte(head)) % KINDS.len()], numbers, &words)
    });
    let scenarios: Vec<Scenario> = scenarios.collect();
    if let Err(broken) = play_together(&scenarios, byte(0) / 32, &mut [SubjectKind::Memory.open()]) {
        panic!("{broken}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_length_of_input_means_something() {
        for length in [0, 1, 2, 8, 9, 10, 13, 28, 29, 40, 2_000] {
            for fill in [0, 1, 0x7f, 0xff] {
                decision_sequence(&vec![fill; length]);
                requests_together(&vec![fill; length]);
            }
        }
    }
}
