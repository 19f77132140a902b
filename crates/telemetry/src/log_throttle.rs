//! Limits repeated log messages: a few are logged, the rest are counted, so that a flood does not fill the disk.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Admits each kind of message a few times per period. Kinds are literals of the program, so there are few.
#[derive(Debug)]
pub struct LogThrottle {
    max_per_period: u32,
    period: Duration,
    kinds: Mutex<Vec<MessageKind>>,
}

#[derive(Debug)]
struct MessageKind {
    name: &'static str,
    since: Instant,
    logged: u32,
    suppressed: u64,
}

impl LogThrottle {
    /// At most `max_per_period` messages of a kind in ten seconds.
    pub fn new(max_per_period: u32) -> LogThrottle {
        LogThrottle { max_per_period, period: Duration::from_secs(10), kinds: Mutex::default() }
    }

    /// Once a minute: for conditions that last until an operator acts.
    pub fn by_the_minute() -> LogThrottle {
        LogThrottle { period: Duration::from_secs(60), ..LogThrottle::new(1) }
    }

    /// `Some` if the message may be logged, with the number of messages suppressed since the last one.
    pub fn admit(&self, kind: &'static str) -> Option<u64> {
        let now = Instant::now();
        let mut kinds = self.kinds.lock();
        let place = kinds.iter().position(|known| known.name == kind).unwrap_or_else(|| {
            kinds.push(MessageKind { name: kind, since: now, logged: 0, suppressed: 0 });
            kinds.len() - 1
        });
        let kind = kinds.get_mut(place)?;
        if now.duration_since(kind.since) >= self.period {
            (kind.since, kind.logged) = (now, 0);
        }
        if kind.logged >= self.max_per_period {
            kind.suppressed += 1;
            return None;
        }
        kind.logged += 1;
        Some(std::mem::take(&mut kind.suppressed))
    }

    /// Suppressed messages that no later message reported, by kind. Call it periodically and at the end.
    pub fn summary(&self, periods: Periods) -> Vec<(&'static str, u64)> {
        let now = Instant::now();
        let mut kinds = self.kinds.lock();
        let over = kinds.iter_mut().filter(|kind| {
            kind.suppressed > 0 && (periods == Periods::All || now.duration_since(kind.since) >= self.period)
        });
        over.map(|kind| (kind.name, std::mem::take(&mut kind.suppressed))).collect()
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
    async fn admits_a_few_and_counts_the_rest() {
        let throttle = LogThrottle::new(2);
        let admitted: Vec<Option<u64>> = (0..125).map(|_| throttle.admit("reset")).collect();
        assert_eq!(admitted[..3], [Some(0), Some(0), None]);
        assert_eq!(throttle.admit("timeout"), Some(0), "kinds do not share");
        assert_eq!(throttle.summary(Periods::Ended), []);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(throttle.admit("reset"), Some(123));
        assert_eq!(throttle.admit("reset"), Some(0));
        assert_eq!(throttle.admit("reset"), None);
        assert_eq!(throttle.summary(Periods::All), [("reset", 1)]);
        assert_eq!(throttle.summary(Periods::All), []);
    }
}
