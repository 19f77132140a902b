//! All or nothing over several limits (RELIABILITY P8), on every store alike.

use proptest::collection::vec;
use proptest::prelude::any;
use tollgate_core::LimitKind;
use tollgate_testkit::SubjectKind;
use tollgate_testkit::oracle::{Scenario, play_together};

use crate::holds;

const KINDS: [LimitKind; 7] = [
    LimitKind::Gcra,
    LimitKind::FixedWindow,
    LimitKind::SlidingCounter,
    LimitKind::SlidingLog,
    LimitKind::Queue,
    LimitKind::Concurrency,
    LimitKind::Quota,
];

/// Up to four limits, each with its numbers, and a row of words per request, one for each limit.
#[test]
fn a_request_is_charged_to_all_or_to_none() {
    let limits = vec((any::<u8>(), any::<[u8; 8]>()), 1..=4);
    let rows = vec(any::<[u32; 4]>(), 0..=100);
    let words = (limits, rows, any::<u8>(), any::<u8>());
    holds("proptest-regressions/together.txt", words, |(limits, rows, shadow, trouble)| {
        let scenarios = limits.iter().enumerate().map(|(place, (kind, head))| {
            let mut head = *head;
            head[0] &= trouble; // at most what all of them may have
            let words: Vec<u32> = rows.iter().map(|row| row[place]).collect();
            Scenario::decode(KINDS[usize::from(*kind) % KINDS.len()], head, &words)
        });
        let scenarios: Vec<Scenario> = scenarios.collect();
        let shadow = if shadow % 4 == 3 { shadow / 4 } else { 0 };
        play_together(&scenarios, shadow, &mut [SubjectKind::Memory.open()])
    });
}
