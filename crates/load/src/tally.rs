//! Counts during a run, second by second, so that progress can be reported.

use std::time::Duration;

use crate::clock::{self, SECOND};
use crate::reply::ReplyVerdict;
use crate::report::{Errors, LatencyHistogram, LoadReport, Second};

/// Bytes kept of a reply with an error.
const SHOWN_MAX: usize = 300;

/// Counts of the measured time.
#[derive(Debug)]
pub struct Tally {
    start: u64,
    second_start: u64,
    cpu: u64,
    /// Latencies of the current second.
    fresh: LatencyHistogram,
    all: LatencyHistogram,
    of_allowed: LatencyHistogram,
    pub sent: u64,
    pub unsent: u64,
    pub reconnects: u64,
    pub errors: Errors,
    allowed: u64,
    denied: u64,
    /// Counts at the end of the previous second.
    before: Counts,
    seconds: Vec<Second>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    allowed: u64,
    denied: u64,
    errors: u64,
}

impl Tally {
    /// Starts counting.
    pub fn new(now: u64) -> Tally {
        Tally {
            start: now,
            second_start: now,
            cpu: clock::cpu(),
            fresh: LatencyHistogram::new(),
            all: LatencyHistogram::new(),
            of_allowed: LatencyHistogram::new(),
            sent: 0,
            unsent: 0,
            reconnects: 0,
            errors: Errors::default(),
            allowed: 0,
            denied: 0,
            before: Counts::default(),
            seconds: Vec::new(),
        }
    }

    /// Counts a reply.
    #[inline]
    pub fn reply(&mut self, latency: u64, verdict: ReplyVerdict, bytes: &[u8]) {
        self.fresh.record(latency);
        match verdict {
            ReplyVerdict::Allowed => {
                self.allowed += 1;
                self.of_allowed.record(latency);
            }
            ReplyVerdict::Denied => self.denied += 1,
            ReplyVerdict::Failed(status) => {
                *self.errors.statuses.entry(status).or_default() += 1;
                self.note_error(|| String::from_utf8_lossy(bytes.get(..SHOWN_MAX).unwrap_or(bytes)).into_owned());
            }
        }
    }

    /// Keeps the text of the first error.
    pub fn note_error(&mut self, what: impl FnOnce() -> String) {
        self.errors.first.get_or_insert_with(what);
    }

    /// End of the current second.
    pub fn second_ends(&self) -> u64 {
        self.second_start + SECOND
    }

    /// Ends the current second, unless it is too short to be meaningful.
    pub fn end_second(&mut self, now: u64) -> Option<&Second> {
        let length = now.saturating_sub(self.second_start) as f64 / SECOND as f64;
        if length < 0.05 && !self.seconds.is_empty() {
            return None;
        }
        let counts = Counts { allowed: self.allowed, denied: self.denied, errors: self.errors.total() };
        self.seconds.push(Second {
            at: now.saturating_sub(self.start) as f64 / SECOND as f64,
            rate: self.fresh.len() as f64 / length.max(f64::MIN_POSITIVE),
            allowed: counts.allowed - self.before.allowed,
            denied: counts.denied - self.before.denied,
            errors: counts.errors - self.before.errors,
            p50: self.fresh.quantile(0.5),
            p99: self.fresh.quantile(0.99),
        });
        (self.before, self.second_start) = (counts, now);
        self.gather();
        self.seconds.last()
    }

    /// Ends the measured time. Replies that arrive later are counted, but not towards the rate.
    pub fn close(&mut self, now: u64) -> MeasuredPeriod {
        self.gather();
        MeasuredPeriod { duration: now - self.start, in_time: self.all.len(), cpu: clock::cpu() - self.cpu }
    }

    /// The report of the run.
    pub fn finish(mut self, closed: MeasuredPeriod) -> LoadReport {
        self.gather();
        LoadReport {
            duration: Duration::from_nanos(closed.duration),
            sent: self.sent,
            answered: self.all.len(),
            allowed: self.allowed,
            denied: self.denied,
            unsent: self.unsent,
            reconnects: self.reconnects,
            errors: self.errors,
            rate: closed.in_time as f64 * SECOND as f64 / closed.duration.max(1) as f64,
            latency: self.all,
            allowed_latency: self.of_allowed,
            cpu: Duration::from_nanos(closed.cpu),
            seconds: self.seconds,
        }
    }

    fn gather(&mut self) {
        self.all.add(&self.fresh);
        self.fresh.clear();
    }
}

/// Facts at the end of the measured time.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredPeriod {
    duration: u64,
    in_time: u64,
    cpu: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_replies_count_but_not_towards_the_rate() {
        let mut tally = Tally::new(0);
        tally.reply(1_000, ReplyVerdict::Allowed, b"");
        tally.reply(3_000, ReplyVerdict::Denied, b"");
        let second = tally.end_second(SECOND).cloned().unwrap();
        assert_eq!((second.at, second.rate, second.allowed, second.denied), (1.0, 2.0, 1, 1));
        let closed = tally.close(SECOND);
        tally.reply(2 * SECOND, ReplyVerdict::Failed(503), b"busy");
        let outcome = tally.finish(closed);
        assert_eq!((outcome.answered, outcome.rate, outcome.errors.total()), (3, 2.0, 1));
        assert_eq!(outcome.errors.first.as_deref(), Some("busy"));
        assert!(outcome.latency.max() >= Duration::from_secs(2));
        // Values of the histogram are rounded; what was denied took three microseconds.
        assert!(outcome.allowed_latency.max() < Duration::from_micros(2));
    }

    #[test]
    fn a_remainder_at_the_end_is_not_a_second() {
        let mut tally = Tally::new(0);
        assert!(tally.end_second(SECOND).is_some());
        assert!(tally.end_second(SECOND + 1_000).is_none());
    }
}
