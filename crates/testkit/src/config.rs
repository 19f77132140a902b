//! The numbers of a limit as they were written down, before `tollgate-core` made a [`Limit`] of them.
//!
//! Models compute from these and not from the limit's own accessors: a model that asks the subject for the interval
//! would never notice that it is wrong.

use tollgate_core::{Concurrency, FixedWindow, Gcra, Limit, LimitError, Queue, SlidingCounter, SlidingLog, Span};

/// An algorithm and its numbers; spans in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the parameters of SPEC section 5, under their own names")]
pub enum Config {
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
}

impl Config {
    /// The limit, or why there is none.
    pub fn limit(&self) -> Result<Limit, LimitError> {
        let span = Span::from_nanos;
        Ok(match *self {
            Config::Gcra { count, period, burst, max_debt, clamp } => {
                let gcra = Gcra::new(count, span(period), burst)?.with_max_debt(max_debt)?;
                Limit::Gcra(if clamp { gcra } else { gcra.unclamped() })
            }
            Config::Queue { count, period, max_delay } => {
                Limit::Queue(Queue::new(count, span(period), span(max_delay))?)
            }
            Config::FixedWindow { limit, window, offset } => {
                Limit::FixedWindow(FixedWindow::new(limit, span(window))?.with_offset(span(offset)))
            }
            Config::SlidingLog { limit, window } => Limit::SlidingLog(SlidingLog::new(limit, span(window))?),
            Config::SlidingCounter { limit, window, offset } => {
                Limit::SlidingCounter(SlidingCounter::new(limit, span(window))?.with_offset(span(offset)))
            }
            Config::Concurrency { slots, ttl } => Limit::Concurrency(Concurrency::new(slots, span(ttl))?),
        })
    }

    /// Time in which one unit comes back; 1 where nothing ever does.
    pub fn interval(&self) -> u64 {
        match *self {
            Config::Gcra { count, period, burst, .. } if count > 0 && burst > 0 => period / count,
            Config::Queue { count, period, .. } if count > 0 => period / count,
            _ => 1,
        }
    }

    /// The largest cost that can pass.
    pub fn capacity(&self) -> u64 {
        match *self {
            Config::Gcra { count: 0, .. } | Config::Queue { count: 0, .. } => 0,
            Config::Gcra { burst, .. } => burst,
            Config::Queue { max_delay, .. } => max_delay / self.interval() + 1,
            Config::FixedWindow { limit, .. }
            | Config::SlidingLog { limit, .. }
            | Config::SlidingCounter { limit, .. } => limit,
            Config::Concurrency { slots, .. } => slots,
        }
    }

    /// The longest that any key may be refused a cost that fits, whatever the clock did (RELIABILITY P20). `None`
    /// without a clamp: redis-cell promises nothing.
    pub fn lock_max(&self) -> Option<u64> {
        match *self {
            Config::Gcra { clamp: false, .. } => None,
            Config::Gcra { burst, max_debt, .. } => Some(self.interval() * (burst + max_debt)),
            Config::Queue { max_delay, .. } => Some(max_delay + self.interval() * self.capacity()),
            Config::FixedWindow { window, .. } | Config::SlidingLog { window, .. } => Some(2 * window),
            Config::SlidingCounter { window, .. } => Some(window.saturating_mul(3)),
            Config::Concurrency { ttl, .. } => Some(ttl),
        }
    }
}
