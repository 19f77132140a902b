//! Says the same thing a few times, then counts: a thousand refused connections must not fill a disk.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Lets each kind of message pass a few times per period. Kinds are words of this program, so they are few.
#[derive(Debug)]
pub struct LogThrottle {
    most: u32,
    period: Duration,
    kinds: Mutex<Vec<Kind>>,
}

#[derive(Debug)]
struct Kind {
    name: &'static str,
    since: Instant,
    said: u32,
    hushed: u64,
}

impl LogThrottle {
    /// At most `most` messages of a kind in ten seconds.
    pub fn new(most: u32) -> LogThrottle {
        LogThrottle { most, period: Duration::from_secs(10), kinds: Mutex::default() }
    }

    /// Once in a minute: for what stays as it is until somebody does something.
    pub fn by_the_minute() -> LogThrottle {
        LogThrottle { period: Duration::from_secs(60), ..LogThrottle::new(1) }
    }

    /// Whether to say it: `Some` with the number of those left out since it was last said, to be told along.
    pub fn admit(&self, kind: &'static str) -> Option<u64> {
        let now = Instant::now();
        let mut kinds = self.kinds.lock();
        let place = kinds.iter().position(|known| known.name == kind).unwrap_or_else(|| {
            kinds.push(Kind { name: kind, since: now, said: 0, hushed: 0 });
            kinds.len() - 1
        });
        let kind = kinds.get_mut(place)?;
        if now.duration_since(kind.since) >= self.period {
            (kind.since, kind.said) = (now, 0);
        }
        if kind.said >= self.most {
            kind.hushed += 1;
            return None;
        }
        kind.said += 1;
        Some(std::mem::take(&mut kind.hushed))
    }

    /// What was left out and never told, by kind: for a look now and then, and before the end. Only periods that are
    /// over are told, unless `all`.
    pub fn summary(&self, periods: Periods) -> Vec<(&'static str, u64)> {
        let now = Instant::now();
        let mut kinds = self.kinds.lock();
        let over = kinds.iter_mut().filter(|kind| {
            kind.hushed > 0 && (periods == Periods::All || now.duration_since(kind.since) >= self.period)
        });
        over.map(|kind| (kind.name, std::mem::take(&mut kind.hushed))).collect()
    }
}

/// Which periods a summary covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Periods {
    /// Periods under way count too.
    All,
    /// Only periods that have ended.
    Ended,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn says_a_few_and_counts_the_rest() {
        let quiet = LogThrottle::new(2);
        let said: Vec<Option<u64>> = (0..125).map(|_| quiet.admit("reset")).collect();
        assert_eq!(said[..3], [Some(0), Some(0), None]);
        assert_eq!(quiet.admit("timeout"), Some(0), "kinds do not share");
        assert_eq!(quiet.summary(Periods::Ended), []);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(quiet.admit("reset"), Some(123));
        assert_eq!(quiet.admit("reset"), Some(0));
        assert_eq!(quiet.admit("reset"), None);
        assert_eq!(quiet.summary(Periods::All), [("reset", 1)]);
        assert_eq!(quiet.summary(Periods::All), []);
    }
}
