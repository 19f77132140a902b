//! The numbers of a limit as configured, before `tollgate-core` makes a [`Limit`] of them.
//!
//! Models compute from these and not from the accessors of the limit: a model that asks the subject for its interval
//! would not notice that it is wrong.

use tollgate_core::{
    Concurrency, FixedWindow, Gcra, Limit, LimitError, Queue, Quota, SlidingCounter, SlidingLog, Span, Time,
};

/// An algorithm and its numbers; spans in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the parameters of SPEC section 5, under their own names")]
pub enum LimitConfig {
    /// SPEC 5.1.
    Gcra { count: u64, period: u64, burst: u64, max_debt: u64, clamp: bool },
    /// SPEC 5.3.
    Queue { count: u64, period: u64, max_delay: u64 },
    /// SPEC 5.4.
    FixedWindow { limit: u64, window: u64, offset: u64 },
    /// SPEC 5.5.
    SlidingLog { limit: u64, window: u64 },
    /// SPEC 5.6.
    SlidingCounter { limit: u64, window: u64, offset: u64 },
    /// SPEC 5.7.
    Concurrency { slots: u64, ttl: u64 },
    /// A calendar quota: a period and the end of the next one, as a node proposes them.
    Quota { amount: u64, overdraft: u64, rollover: u64, grant: u64, start: u64, end: u64, next_end: u64 },
}

impl LimitConfig {
    /// The limit, or why there is none.
    pub fn limit(&self) -> Result<Limit, LimitError> {
        let span = Span::from_nanos;
        Ok(match *self {
            LimitConfig::Gcra { count, period, burst, max_debt, clamp } => {
                let gcra = Gcra::new(count, span(period), burst)?.with_max_debt(max_debt)?;
                Limit::Gcra(if clamp { gcra } else { gcra.unclamped() })
            }
            LimitConfig::Queue { count, period, max_delay } => {
                Limit::Queue(Queue::new(count, span(period), span(max_delay))?)
            }
            LimitConfig::FixedWindow { limit, window, offset } => {
                Limit::FixedWindow(FixedWindow::new(limit, span(window))?.with_offset(span(offset)))
            }
            LimitConfig::SlidingLog { limit, window } => Limit::SlidingLog(SlidingLog::new(limit, span(window))?),
            LimitConfig::SlidingCounter { limit, window, offset } => {
                Limit::SlidingCounter(SlidingCounter::new(limit, span(window))?.with_offset(span(offset)))
            }
            LimitConfig::Concurrency { slots, ttl } => Limit::Concurrency(Concurrency::new(slots, span(ttl))?),
            LimitConfig::Quota { amount, overdraft, rollover, grant, start, end, next_end } => {
                let time = Time::from_nanos;
                let quota = Quota::new(amount, time(start), time(end), time(next_end))?;
                Limit::Quota(quota.with_overdraft(overdraft).with_rollover(rollover).with_grant(grant))
            }
        })
    }

    /// Nanoseconds in which one unit comes back; 1 if none ever does.
    pub fn interval(&self) -> u64 {
        match *self {
            LimitConfig::Gcra { count, period, burst, .. } if count > 0 && burst > 0 => period / count,
            LimitConfig::Queue { count, period, .. } if count > 0 => period / count,
            _ => 1,
        }
    }

    /// The largest cost that can pass.
    pub fn capacity(&self) -> u64 {
        match *self {
            LimitConfig::Gcra { count: 0, .. } | LimitConfig::Queue { count: 0, .. } => 0,
            LimitConfig::Gcra { burst, .. } => burst,
            LimitConfig::Queue { max_delay, .. } => max_delay / self.interval() + 1,
            LimitConfig::FixedWindow { limit, .. }
            | LimitConfig::SlidingLog { limit, .. }
            | LimitConfig::SlidingCounter { limit, .. } => limit,
            LimitConfig::Concurrency { slots, .. } => slots,
            LimitConfig::Quota { amount, .. } => amount,
        }
    }

    /// The longest that any key may be refused a cost that fits, whatever the clock did (RELIABILITY P20). `None`
    /// without a clamp: redis-cell promises nothing.
    pub fn lock_max(&self) -> Option<u64> {
        match *self {
            LimitConfig::Gcra { clamp: false, .. } => None,
            LimitConfig::Gcra { burst, max_debt, .. } => Some(self.interval() * (burst + max_debt)),
            LimitConfig::Queue { max_delay, .. } => Some(max_delay + self.interval() * self.capacity()),
            LimitConfig::FixedWindow { window, .. } | LimitConfig::SlidingLog { window, .. } => Some(2 * window),
            LimitConfig::SlidingCounter { window, .. } => Some(window.saturating_mul(3)),
            LimitConfig::Concurrency { ttl, .. } => Some(ttl),
            LimitConfig::Quota { end, next_end, .. } if end == next_end => Some(0), // never comes back, never waits
            LimitConfig::Quota { start, end, next_end, .. } => Some((end - start).max(next_end - end)),
        }
    }

    /// How far after `now` a charge may be written: where that is beyond the end of time, states saturate.
    pub fn reach(&self, now: u64) -> u64 {
        match *self {
            // Without a clamp nothing bounds a lock; forced usage reaches as far as it does with one.
            LimitConfig::Gcra { burst, max_debt, .. } => self.interval().saturating_mul(burst.saturating_add(max_debt)),
            // After its bounds, a period lasts as long as the proposed one.
            LimitConfig::Quota { start, end, .. } if now >= end => end - start,
            _ => self.lock_max().unwrap_or_default(),
        }
    }
}
