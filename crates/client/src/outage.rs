//! What an outage is reported to: the hook, and the log once in ten seconds.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Span, Time};

use crate::config::OutageHook;
use crate::failure::Outage;

/// Time between two lines of the log.
const LOG_EVERY: Span = Span::from_secs(10);

/// Reports outages.
pub(crate) struct OutageReporter {
    hook: Option<OutageHook>,
    /// When the last line was written, in nanoseconds; 0 is never.
    last: AtomicU64,
}

impl OutageReporter {
    pub(crate) fn new(hook: Option<OutageHook>) -> OutageReporter {
        OutageReporter { hook, last: AtomicU64::new(0) }
    }

    pub(crate) fn report(&self, outage: &Outage, now: Time) {
        if let Some(hook) = &self.hook {
            hook(outage);
        }
        let is_due = |last: u64| {
            let due = last == 0 || now.since(Time::from_nanos(last)) >= LOG_EVERY;
            due.then_some(now.nanos().max(1))
        };
        if self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_due).is_ok() {
            tracing::warn!(error = %outage, "no decision of the rate limiter: the fail policy decides");
        }
    }
}
