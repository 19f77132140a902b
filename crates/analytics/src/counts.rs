//! Counts of requests by what became of them.

/// Requests allowed and denied, and the units that they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCounts {
    /// Requests that were allowed.
    pub allowed: u64,
    /// Requests that were denied.
    pub denied: u64,
    /// Requests that a rule in shadow mode would have denied.
    pub shadow_denied: u64,
    /// Units that were charged.
    pub cost: u64,
}

impl TrafficCounts {
    /// Adds other counts; they stop at the largest number.
    pub fn add(&mut self, other: TrafficCounts) {
        self.allowed = self.allowed.saturating_add(other.allowed);
        self.denied = self.denied.saturating_add(other.denied);
        self.shadow_denied = self.shadow_denied.saturating_add(other.shadow_denied);
        self.cost = self.cost.saturating_add(other.cost);
    }

    /// Requests that were decided.
    pub const fn requests(&self) -> u64 {
        self.allowed.saturating_add(self.denied)
    }

    /// True if nothing was counted.
    pub fn is_zero(&self) -> bool {
        *self == TrafficCounts::default()
    }
}

impl std::iter::Sum for TrafficCounts {
    fn sum<I: Iterator<Item = TrafficCounts>>(all: I) -> TrafficCounts {
        let mut sum = TrafficCounts::default();
        all.for_each(|counts| sum.add(counts));
        sum
    }
}
