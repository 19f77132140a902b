//! When to try to connect again: at once after a connection that worked, then with growing pauses.

use tollgate_core::{Span, Time};

/// Minimum distance between attempts: twenty per second.
const APART: Span = Span::from_millis(50);
const FIRST: Span = Span::from_millis(50);
const LONGEST: Span = Span::from_secs(5);

/// Pauses between attempts to connect.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff {
    last: Option<Time>,
    failures: u32,
}

impl Backoff {
    /// When the next attempt may begin; `random` is uniformly distributed.
    pub(crate) fn next(&self, now: Time, random: u64) -> Time {
        let Some(last) = self.last else { return now };
        let longest = FIRST.nanos().checked_shl(self.failures.min(20)).unwrap_or(u64::MAX).min(LONGEST.nanos());
        let pause = if self.failures == 0 { Span::ZERO } else { Span::from_nanos(random % longest) };
        now.after(pause).max(last.after(APART))
    }

    /// An attempt begins.
    pub(crate) fn began(&mut self, now: Time) {
        self.last = Some(now);
        self.failures = self.failures.saturating_add(1);
    }

    /// The connection worked.
    pub(crate) fn worked(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_attempt_and_the_first_after_a_good_connection_come_at_once() {
        let mut backoff = Backoff::default();
        let now = Time::from_secs(1);
        assert_eq!(backoff.next(now, 999_999_999), now);
        backoff.began(now);
        backoff.worked();
        let later = Time::from_secs(2);
        assert_eq!(backoff.next(later, 999_999_999), later);
        assert_eq!(backoff.next(now, 0), now.after(APART), "but not in step with a server that hangs up");
    }

    #[test]
    fn pauses_double_up_to_five_seconds() {
        let (mut backoff, now) = (Backoff::default(), Time::from_secs(1));
        let mut longest = Vec::new();
        for _ in 0..10 {
            backoff.began(now);
            let most = (0..1000).map(|part| backoff.next(now, part * 5_000_011).since(now).millis_ceil()).max();
            longest.push(most.unwrap() / 100);
        }
        assert_eq!(longest, [0, 1, 3, 7, 15, 31, 49, 49, 49, 49]);
    }

    #[test]
    fn never_more_than_twenty_attempts_in_a_second() {
        for random in [0, 1, 7, u64::MAX] {
            let (mut backoff, mut now, mut attempts) = (Backoff::default(), Time::from_secs(1), 0);
            while now < Time::from_secs(2) {
                backoff.began(now);
                attempts += 1;
                now = backoff.next(now, random);
            }
            assert!(attempts <= 20, "{attempts}");
        }
    }
}
