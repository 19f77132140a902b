//! A limit: an algorithm and its parameters, as one value inside a charge.

use crate::{
    Algorithm, Ask, Concurrency, FixedWindow, Gcra, LimitError, Outcome, Queue, Quota, SlidingCounter, SlidingLog,
    Span, Time,
};

/// Any of the algorithms. An enum, not a trait object: stores match on it, and it is copied, not boxed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)] // a tag as wide as the fields: a limit that was just copied is read back without a stall
pub enum Limit {
    /// Token bucket, GCRA, leaky bucket as a meter.
    Gcra(Gcra),
    /// Leaky bucket as a queue.
    Queue(Queue),
    /// Fixed window.
    FixedWindow(FixedWindow),
    /// Sliding window, exact.
    SlidingLog(SlidingLog),
    /// Sliding window, estimated.
    SlidingCounter(SlidingCounter),
    /// Concurrency slots.
    Concurrency(Concurrency),
    /// Calendar quota.
    Quota(Quota),
}

/// The algorithm of a limit. Part of a bucket's identity: another algorithm means another bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitKind {
    /// [`Limit::Gcra`]
    Gcra,
    /// [`Limit::Queue`]
    Queue,
    /// [`Limit::FixedWindow`]
    FixedWindow,
    /// [`Limit::SlidingLog`]
    SlidingLog,
    /// [`Limit::SlidingCounter`]
    SlidingCounter,
    /// [`Limit::Concurrency`]
    Concurrency,
    /// [`Limit::Quota`]
    Quota,
}

impl LimitKind {
    /// The name in rules, responses and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            LimitKind::Gcra => "gcra",
            LimitKind::Queue => "leaky_bucket",
            LimitKind::FixedWindow => "fixed_window",
            LimitKind::SlidingLog => "sliding_window_log",
            LimitKind::SlidingCounter => "sliding_window_counter",
            LimitKind::Concurrency => "concurrency",
            LimitKind::Quota => "quota",
        }
    }
}

impl Limit {
    /// A token bucket of `requests` per second, with a burst of one second's requests.
    pub fn per_second(requests: u64) -> Result<Limit, LimitError> {
        Limit::token_bucket(requests, Span::SECOND)
    }

    /// A token bucket of `requests` per minute, with a burst of one minute's requests.
    pub fn per_minute(requests: u64) -> Result<Limit, LimitError> {
        Limit::token_bucket(requests, Span::from_secs(60))
    }

    /// A token bucket of `requests` per `period`, with a burst of `requests`.
    pub fn token_bucket(requests: u64, period: Span) -> Result<Limit, LimitError> {
        Gcra::new(requests, period, requests).map(Limit::Gcra)
    }

    /// The same rate with room for `burst` at once; other algorithms than the token bucket are unchanged.
    pub fn burst(self, burst: u64) -> Result<Limit, LimitError> {
        match self {
            Limit::Gcra(g) => g.with_rate(g.requests(), burst).map(Limit::Gcra),
            other => Ok(other),
        }
    }

    /// The algorithm.
    pub const fn kind(&self) -> LimitKind {
        match self {
            Limit::Gcra(_) => LimitKind::Gcra,
            Limit::Queue(_) => LimitKind::Queue,
            Limit::FixedWindow(_) => LimitKind::FixedWindow,
            Limit::SlidingLog(_) => LimitKind::SlidingLog,
            Limit::SlidingCounter(_) => LimitKind::SlidingCounter,
            Limit::Concurrency(_) => LimitKind::Concurrency,
            Limit::Quota(_) => LimitKind::Quota,
        }
    }

    /// The largest cost that can ever pass: `limit` in responses. A quota admits its overdraft and carried units too.
    pub fn capacity(&self) -> u64 {
        match self {
            Limit::Gcra(g) => g.burst(),
            Limit::Queue(q) => q.capacity(),
            Limit::FixedWindow(w) => w.limit(),
            Limit::SlidingLog(l) => l.limit(),
            Limit::SlidingCounter(c) => c.limit(),
            Limit::Concurrency(c) => c.slots(),
            Limit::Quota(q) => q.amount(),
        }
    }

    /// Units per [`window`](Limit::window): the rate, whereas the capacity is the burst.
    pub fn requests(&self) -> u64 {
        match self {
            Limit::Gcra(g) => g.requests(),
            Limit::Queue(q) => q.requests(),
            other => other.capacity(),
        }
    }

    /// The period of the rate, the length of the window or of the calendar's period, or a slot's time to live.
    pub fn window(&self) -> Span {
        match self {
            Limit::Gcra(g) => g.period(),
            Limit::Queue(q) => q.period(),
            Limit::FixedWindow(w) => w.window(),
            Limit::SlidingLog(l) => l.window(),
            Limit::SlidingCounter(c) => c.window(),
            Limit::Concurrency(c) => c.ttl(),
            Limit::Quota(q) => q.window(),
        }
    }

    /// The offset of its windows from the epoch.
    pub fn offset(&self) -> Span {
        match self {
            Limit::FixedWindow(w) => w.offset(),
            Limit::SlidingCounter(c) => c.offset(),
            _ => Span::ZERO,
        }
    }

    /// The same limit with room for at least `debt` units beyond its capacity, if its algorithm has debt.
    pub fn with_debt(self, debt: u64) -> Limit {
        match self {
            Limit::Gcra(g) => g.with_max_debt(g.max_debt().max(debt)).map_or(self, Limit::Gcra),
            other => other,
        }
    }

    /// The same limit with `requests` per window and, for a token bucket, `burst` at once: what an override changes.
    pub fn with_requests(self, requests: u64, burst: u64) -> Result<Limit, LimitError> {
        Ok(match self {
            Limit::Gcra(g) => Limit::Gcra(g.with_rate(requests, burst)?),
            Limit::Queue(q) => Limit::Queue(Queue::new(requests, q.period(), q.max_delay())?),
            Limit::FixedWindow(w) => Limit::FixedWindow(w.with_limit(requests)),
            Limit::SlidingLog(l) => Limit::SlidingLog(SlidingLog::new(requests, l.window())?),
            Limit::SlidingCounter(c) => Limit::SlidingCounter(c.with_limit(requests)),
            Limit::Concurrency(c) => Limit::Concurrency(Concurrency::new(requests, c.ttl())?),
            Limit::Quota(q) => Limit::Quota(q.with_amount(requests)),
        })
    }

    /// The outcome of reading an unused bucket.
    pub fn unused(&self, now: Time) -> Outcome {
        let ask = Ask::Peek(0);
        match self {
            Limit::Gcra(g) => g.view(&Default::default(), now, &ask, true, 0),
            Limit::Queue(q) => q.view(&Default::default(), now, &ask, true, 0),
            Limit::FixedWindow(w) => w.view(&Default::default(), now, &ask, true, 0),
            Limit::SlidingLog(l) => l.view(&Default::default(), now, &ask, true, 0),
            Limit::SlidingCounter(c) => c.view(&Default::default(), now, &ask, true, 0),
            Limit::Concurrency(c) => c.view(&Default::default(), now, &ask, true, 0),
            Limit::Quota(q) => q.view(&Default::default(), now, &ask, true, 0),
        }
    }

    /// Until when a charge with this `stamp` can be refunded: after that, time has returned all its units.
    pub fn owes_until(&self, stamp: Time) -> Time {
        match self {
            Limit::Gcra(_) | Limit::Queue(_) | Limit::FixedWindow(_) | Limit::Concurrency(_) | Limit::Quota(_) => stamp,
            Limit::SlidingLog(l) => stamp.after(l.window()),
            Limit::SlidingCounter(c) => stamp.after(c.window()),
        }
    }

    /// One of `parts` equal shares, rounded up: a node's share while the store is unavailable.
    pub fn share(self, parts: u64) -> Limit {
        let part = |n: u64| n.div_ceil(parts.max(1));
        if let Limit::Quota(q) = self {
            return Limit::Quota(q.scaled(part));
        }
        let burst = if let Limit::Gcra(g) = self { part(g.burst()) } else { 0 };
        self.with_requests(part(self.requests()), burst).unwrap_or(self)
    }

    /// `factor` times the limit, or the limit itself where that is not representable.
    pub fn times(self, factor: u64) -> Limit {
        if let Limit::Quota(q) = self {
            // Granted to one client, whereas a larger bucket is shared.
            return Limit::Quota(q.scaled(|n| n.saturating_mul(factor)).with_grant(0));
        }
        let burst = if let Limit::Gcra(g) = self { g.burst().saturating_mul(factor) } else { 0 };
        let scaled = self.with_requests(self.requests().saturating_mul(factor), burst);
        scaled.or_else(|_| self.with_requests(self.requests(), burst)).unwrap_or(self)
    }

    /// The limit with `extra` more capacity at the same rate, for soft limits. A capacity of zero stays zero.
    pub fn raised(self, extra: u64) -> Limit {
        match self {
            blocking if blocking.capacity() == 0 => blocking,
            Limit::Gcra(g) => g.raised(extra).map_or(self, Limit::Gcra),
            Limit::Queue(_) | Limit::Concurrency(_) | Limit::Quota(_) => self,
            other => other.with_requests(other.requests().saturating_add(extra), 0).unwrap_or(self),
        }
    }
}
