//! P11: how many slots were held at once, at least.

/// A slot that a client certainly held: from the answer that granted it to the request that released it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldSlot {
    /// When the client received the slot.
    pub from: u64,
    /// When it released the slot, or the slot expired.
    pub to: u64,
}

/// The most that were held at the same time.
pub fn inflight(held: &[HeldSlot]) -> usize {
    let begins = held.iter().map(|held| (held.from, 1));
    let ends = held.iter().map(|held| (held.to.max(held.from), -1));
    let mut steps: Vec<(u64, i64)> = begins.chain(ends).collect();
    steps.sort_unstable(); // what ends at the moment when another begins, ends first
    let (mut now, mut most) = (0, 0);
    for (_, step) in steps {
        now += step;
        most = most.max(now);
    }
    usize::try_from(most).unwrap_or(0)
}
