//! Penalties: a client that is refused again and again is refused altogether for a while.

/// When a penalty begins, and how long it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PenaltySpec {
    /// Denials that bring it.
    pub after: u64,
    /// Within this time, in nanoseconds.
    pub within_ns: u64,
    /// How long the first one lasts.
    pub block_ns: u64,
    /// How many times longer each further one is.
    pub growth: u64,
    /// The longest.
    pub max_ns: u64,
}

impl PenaltySpec {
    /// Most denials that a penalty counts: the time of each is kept.
    pub const AFTER_MAX: u64 = 1000;
    /// Most penalties that are remembered of a client; further ones last as long as this one.
    pub const LEVELS_MAX: u64 = 32;
    /// The longest penalty of a rule that names none.
    pub const MAX_NS: u64 = 86_400_000_000_000;

    /// How long the penalty of this number lasts; the first is 1.
    pub fn block_of(&self, number: u64) -> u64 {
        let further = u32::try_from(number.saturating_sub(1)).unwrap_or(u32::MAX);
        self.block_ns.saturating_mul(self.growth.saturating_pow(further)).min(self.max_ns)
    }

    /// How long a penalty counts towards the length of the next: twice the longest, so that the memory outlasts it.
    pub fn memory_ns(&self) -> u64 {
        self.max_ns.saturating_mul(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn penalties_grow_to_the_longest() {
        let spec = PenaltySpec { after: 1, within_ns: 1, block_ns: 10, growth: 2, max_ns: 65 };
        assert_eq!([0, 1, 2, 3, 4, 99].map(|number| spec.block_of(number)), [10, 10, 20, 40, 65, 65]);
        assert_eq!(PenaltySpec { growth: 1, ..spec }.block_of(u64::MAX), 10);
    }
}
