//! The limit of a rule: amount and algorithm.

use tollgate_calendar::Every;

use super::QuotaSpec;

/// How much is allowed. The algorithm decides which numbers are used; the others are zero or `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitSpec {
    /// The algorithm.
    pub algorithm: LimitAlgorithm,
    /// Units per window; 0 refuses everything.
    pub requests: u64,
    /// Length of the window.
    pub window_ns: u64,
    /// Capacity of a bucket, if it differs from `requests`.
    pub burst: Option<u64>,
    /// Requests in flight (concurrency).
    pub slots: u64,
    /// Lifetime of a slot that its holder does not renew (concurrency).
    pub slot_ttl_ns: u64,
    /// Slots that are left for important requests (concurrency): the limit sheds load.
    pub reserved: Option<ReservedSlots>,
    /// Longest delay of a request; makes a leaky bucket a queue.
    pub max_delay_ns: Option<u64>,
    /// Where windows start.
    pub align: Align,
    /// The calendar of a quota.
    pub quota: Option<Box<QuotaSpec>>,
}

impl Default for LimitSpec {
    fn default() -> Self {
        Self {
            algorithm: LimitAlgorithm::default(),
            requests: 0,
            window_ns: 0,
            burst: None,
            slots: 0,
            slot_ttl_ns: Self::SLOT_TTL_NS,
            reserved: None,
            max_delay_ns: None,
            align: Align::default(),
            quota: None,
        }
    }
}

impl LimitSpec {
    /// A limit of `amount` per period. Its window is the usual length of a period, for display.
    pub fn quota(amount: u64, quota: QuotaSpec) -> LimitSpec {
        const DAY: u64 = 86_400_000_000_000;
        let window_ns = match quota.calendar.every() {
            Every::Day => DAY,
            Every::Week => 7 * DAY,
            Every::Month => 30 * DAY,
            Every::Year => 365 * DAY,
            Every::Never => 0,
        };
        let algorithm = LimitAlgorithm::Quota;
        LimitSpec { algorithm, requests: amount, window_ns, quota: Some(Box::new(quota)), ..LimitSpec::default() }
    }
}

impl LimitSpec {
    /// Lifetime of a slot if the rule sets none: 10 s.
    pub const SLOT_TTL_NS: u64 = 10_000_000_000;

    /// Whether it is the queue form of the leaky bucket.
    pub fn is_queue(&self) -> bool {
        self.algorithm == LimitAlgorithm::LeakyBucket && self.max_delay_ns.is_some()
    }

    /// Whether it is GCRA under one of its names: token bucket, GCRA, leaky bucket as a meter.
    pub fn is_gcra(&self) -> bool {
        matches!(self.algorithm, LimitAlgorithm::TokenBucket | LimitAlgorithm::Gcra | LimitAlgorithm::LeakyBucket)
            && !self.is_queue()
    }

    /// Whether it refuses every request.
    pub fn blocks(&self) -> bool {
        match self.algorithm {
            LimitAlgorithm::Concurrency => self.slots == 0,
            _ => self.requests == 0,
        }
    }

    /// The largest cost that can pass; callers see it as the limit.
    pub fn capacity(&self) -> u64 {
        match self.algorithm {
            LimitAlgorithm::Concurrency => self.slots,
            _ if self.requests == 0 => 0,
            _ if self.is_queue() => self.queue_capacity(),
            _ if self.is_gcra() => self.burst.unwrap_or(self.requests),
            _ => self.requests,
        }
    }

    /// SPEC 5.3: a cost above floor(max_delay / T) + 1 never fits, where T = window / requests.
    fn queue_capacity(&self) -> u64 {
        let waits = u128::from(self.max_delay_ns.unwrap_or(0)) * u128::from(self.requests);
        let places = waits / u128::from(self.window_ns.max(1)) + 1;
        u64::try_from(places).unwrap_or(u64::MAX)
    }
}

/// A share of the slots of a concurrency limit that only one class of requests may use: the fleet usage shedder of
/// SPEC 5.9. What such a limit refuses is shed for the fleet's sake, not for the caller's usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedSlots {
    /// The share in percent.
    pub percent: u32,
    /// The value of the attribute [`ATTRIBUTE`](ReservedSlots::ATTRIBUTE) of those requests.
    pub class: String,
}

impl Default for ReservedSlots {
    fn default() -> Self {
        Self { percent: 20, class: "critical".to_owned() }
    }
}

impl ReservedSlots {
    /// The attribute with the class of a request.
    pub const ATTRIBUTE: &'static str = "priority";
    /// The class of health checks, which is above every other: it may always use the share.
    pub const HEALTH: &'static str = "health";

    /// Whether requests of this class may use the share.
    pub fn is_for(&self, class: &str) -> bool {
        class == self.class || class == ReservedSlots::HEALTH
    }

    /// The slots that all requests may use; what is reserved is rounded up.
    pub fn shared(&self, slots: u64) -> u64 {
        let reserved = (u128::from(slots) * u128::from(self.percent.min(100))).div_ceil(100);
        slots.saturating_sub(u64::try_from(reserved).unwrap_or(u64::MAX))
    }
}

/// Algorithm of a limit, by the names of the rules language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LimitAlgorithm {
    /// Refills steadily up to `burst`.
    #[default]
    TokenBucket,
    /// The same algorithm under its name in telecommunications.
    Gcra,
    /// The same algorithm as a meter; with `max_delay`, a queue.
    LeakyBucket,
    /// Counts requests in aligned windows.
    FixedWindow,
    /// Remembers every admitted request.
    SlidingWindowLog,
    /// Counts requests in windows, and weighs the previous one.
    SlidingWindowCounter,
    /// Counts requests in flight.
    Concurrency,
    /// Counts units per calendar period. Written as `quota`, not as an algorithm of `limit`.
    Quota,
}

impl LimitAlgorithm {
    /// Every algorithm that `limit` can name.
    pub const ALL: [Self; 7] = [
        Self::TokenBucket,
        Self::Gcra,
        Self::LeakyBucket,
        Self::FixedWindow,
        Self::SlidingWindowLog,
        Self::SlidingWindowCounter,
        Self::Concurrency,
    ];

    /// Its name in files, metrics and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::TokenBucket => "token_bucket",
            Self::Gcra => "gcra",
            Self::LeakyBucket => "leaky_bucket",
            Self::FixedWindow => "fixed_window",
            Self::SlidingWindowLog => "sliding_window_log",
            Self::SlidingWindowCounter => "sliding_window_counter",
            Self::Concurrency => "concurrency",
            Self::Quota => "quota",
        }
    }
}

/// Where windows start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Align {
    /// At multiples of the window since the epoch.
    #[default]
    Clock,
    /// At an offset that depends on the key, so that buckets do not all reset at once.
    Key,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserved_share_is_rounded_up() {
        let shared = |percent, slots| ReservedSlots { percent, ..ReservedSlots::default() }.shared(slots);
        assert_eq!((shared(20, 100), shared(20, 3), shared(20, 1), shared(100, 7)), (80, 2, 0, 0));
        assert_eq!((shared(20, 0), shared(1, u64::MAX)), (0, 18_262_276_632_972_456_098));
    }
}
