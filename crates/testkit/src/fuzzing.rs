//! What fuzz targets call and what the replay of their corpus calls: bytes in, a panic if a promise is broken.

use tollgate_core::LimitKind;

use crate::oracle::{Script, play};

/// Every algorithm, in the order in which a first byte chooses it.
const KINDS: [LimitKind; 6] = [
    LimitKind::Gcra,
    LimitKind::Queue,
    LimitKind::FixedWindow,
    LimitKind::SlidingLog,
    LimitKind::SlidingCounter,
    LimitKind::Concurrency,
];

/// Steps beyond this are left unread: the checks of one step look at all steps before.
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
    let script = Script::decode(KINDS[usize::from(*kind) % KINDS.len()], numbers, &words);
    if let Err(broken) = play(&script) {
        panic!("{broken}");
    }
}
