//! The bounds of a rule, in numbers.

use crate::LimitConfig;

/// The bounds that a rule promises.
#[derive(Clone, Debug)]
pub struct Promise {
    /// Its name.
    pub rule: String,
    /// Its limit.
    pub limit: LimitConfig,
    /// Whose requests share a bucket.
    pub keyed: Keyed,
    /// N\*: the number of shares of a limit while the store is unavailable.
    pub nodes: u64,
    /// N·q: the most that leases add to any interval (P5).
    pub leased: u64,
    /// When the store lost its data, and what each loss may admit again (P17).
    pub losses: Vec<Loss>,
}

/// Whose requests share a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyed {
    /// Those of one caller.
    Caller,
    /// All.
    Everyone,
}

/// The store forgot up to `units` at some time in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The earliest time, in nanoseconds of the clock that the history is timed by.
    pub from: u64,
    /// The latest.
    pub to: u64,
    /// The most that may be admitted again because of it.
    pub units: u64,
}

/// The capacity of an overflow bucket, in limits.
const OVERFLOW: u64 = 10;

impl Promise {
    /// A rule of one node and exact buckets, one per caller.
    pub fn new(rule: &str, limit: LimitConfig) -> Promise {
        Promise { rule: rule.to_owned(), limit, keyed: Keyed::Caller, nodes: 1, leased: 0, losses: Vec::new() }
    }

    /// The bucket of a key.
    pub fn bucket(&self, key: &str) -> String {
        match self.keyed {
            Keyed::Caller => key.to_owned(),
            Keyed::Everyone => "all".to_owned(),
        }
    }

    /// What one node may admit by itself: its part, rounded up (P13).
    pub fn share(&self) -> LimitConfig {
        let part = |units: u64| units.div_ceil(self.nodes.max(1));
        scaled(self.limit, part)
    }

    /// What the rule's overflow bucket may admit.
    pub(super) fn overflow(&self) -> LimitConfig {
        scaled(self.limit, |units| units.saturating_mul(OVERFLOW))
    }
}

fn scaled(config: LimitConfig, scale: impl Fn(u64) -> u64) -> LimitConfig {
    match config {
        LimitConfig::Gcra { count, period, burst, max_debt, clamp } => {
            LimitConfig::Gcra { count: scale(count), period, burst: scale(burst), max_debt, clamp }
        }
        LimitConfig::Queue { count, period, max_delay } => {
            LimitConfig::Queue { count: scale(count), period, max_delay }
        }
        LimitConfig::FixedWindow { limit, window, offset } => {
            LimitConfig::FixedWindow { limit: scale(limit), window, offset }
        }
        LimitConfig::SlidingLog { limit, window } => LimitConfig::SlidingLog { limit: scale(limit), window },
        LimitConfig::SlidingCounter { limit, window, offset } => {
            LimitConfig::SlidingCounter { limit: scale(limit), window, offset }
        }
        LimitConfig::Concurrency { slots, ttl } => LimitConfig::Concurrency { slots: scale(slots), ttl },
        LimitConfig::Quota { amount, overdraft, rollover, grant, start, end, next_end } => {
            let [amount, overdraft, rollover, grant] = [amount, overdraft, rollover, grant].map(scale);
            LimitConfig::Quota { amount, overdraft, rollover, grant, start, end, next_end }
        }
    }
}
