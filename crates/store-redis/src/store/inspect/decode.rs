//! Decodes the values of buckets, in the formats that the scripts write.

use crate::store::script::{BucketValue, counts, number};
use tollgate_core::{Ask, Limit, LogSummary, Outcome, SlidingLog, SlotsSummary, Span, Time};
use tollgate_resp::RespValue;

/// The state of a bucket, by algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketState {
    /// Token bucket or queue: the theoretical arrival time (TAT), at which the bucket is full again.
    Arrival(Time),
    /// Fixed window.
    Window {
        /// End of the window.
        end: Time,
        /// Units in it.
        count: u64,
    },
    /// Sliding window counter.
    Counter {
        /// End of the newer window.
        end: Time,
        /// Units in the older window.
        previous: u64,
        /// Units in the newer window.
        current: u64,
    },
    /// Calendar quota.
    Quota {
        /// End of the period.
        end: Time,
        /// Units used in it.
        used: u64,
        /// Units left over from the period before.
        carried: u64,
    },
    /// Sliding window log: entries within the window.
    Log {
        /// How many.
        entries: u64,
        /// The oldest one.
        oldest: Option<Time>,
        /// The newest one.
        newest: Option<Time>,
    },
    /// Slots of requests in flight that have not expired.
    Slots {
        /// How many.
        held: u64,
        /// When the first one expires unless it is renewed.
        first_expiry: Option<Time>,
        /// When the last one does.
        last_expiry: Option<Time>,
    },
}

/// The decoded replies, and the view of the limit at `now`; `None` if they are not a bucket of this limit's algorithm.
pub(super) fn decode(limit: &Limit, replies: &[RespValue], now: Time) -> Option<(BucketState, Outcome)> {
    let ask = Ask::Peek(0);
    match (limit, replies) {
        (Limit::SlidingLog(log), [RespValue::Array(elements)]) => {
            let (state, sight) = read_log(log, elements, now)?;
            Some((state, log.outcome_from(&sight, now, &ask, true, 0)))
        }
        (Limit::Concurrency(slots), [count, first, last]) => {
            let in_use = u64::try_from(count.integer()?).ok()?;
            let newest = expiry(last).filter(|expiry| *expiry > now);
            let state = BucketState::Slots { held: in_use, first_expiry: expiry(first), last_expiry: newest };
            let sight = SlotsSummary { in_use, frees: None, newest };
            Some((state, slots.outcome_from(&sight, now, &ask, true, 0)))
        }
        (_, [value]) => {
            let held = BucketValue::read(limit, value).ok()?;
            let state = match &held {
                BucketValue::Gcra(tat) => BucketState::Arrival(tat.0),
                BucketValue::Queue(next_free) => BucketState::Arrival(next_free.0),
                BucketValue::Window(window) => BucketState::Window { end: window.end, count: window.count },
                BucketValue::Counter(_) => {
                    let (end, [previous, current]) = counts(value.text(), 2).ok()?;
                    BucketState::Counter { end, previous, current }
                }
                BucketValue::Quota(quota) => {
                    BucketState::Quota { end: quota.end(), used: quota.used(), carried: quota.carried() }
                }
                _ => return None,
            };
            Some((state, held.view(limit, now, &ask, true, 0)?))
        }
        _ => None,
    }
}

/// The expiry in `[member, score]`, in microseconds.
fn expiry(reply: &RespValue) -> Option<Time> {
    let [_, score] = reply.array()? else { return None };
    let micros = u64::try_from(score.integer()?).ok()?;
    Some(Time::from_nanos(micros.saturating_mul(1000)))
}

/// A head of 17 bytes (sum, and the shift of all times), then entries of 13 or 17 bytes, oldest first.
fn read_log(log: &SlidingLog, elements: &[RespValue], now: Time) -> Option<(BucketState, LogSummary)> {
    let [head, entries @ ..] = elements else { return None };
    let (_, shift) = head.text().filter(|head| head.len() == 17)?.split_at_checked(8)?;
    let shift = Span::from_nanos(nanos(shift)?);
    let entries: Vec<(Time, u64)> =
        entries.iter().map(|entry| read_entry(entry.text()?, shift)).collect::<Option<_>>()?;
    let (newest, _) = *entries.last()?;
    // As in the scripts: a clock that stepped back by a window or more shifts the whole log to now.
    let ahead = newest.since(now);
    let back = if ahead >= log.window() { ahead } else { Span::ZERO };
    let at = now.max(newest.before(back));
    let live = entries.iter().map(|(time, cost)| (time.before(back), *cost));
    let live: Vec<(Time, u64)> = live.filter(|(time, _)| at.since(*time) < log.window()).collect();
    let (oldest, newest) = (live.first().map(|(time, _)| *time), live.last().map(|(time, _)| *time));
    let used = live.iter().fold(0u64, |used, (_, cost)| used.saturating_add(*cost));
    let state = BucketState::Log { entries: live.len() as u64, oldest, newest };
    Some((state, LogSummary { used, at, frees: None, next: None, newest }))
}

fn read_entry(entry: &[u8], shift: Span) -> Option<(Time, u64)> {
    let (time, cost) = entry.split_at_checked(9)?;
    let cost = match cost.split_at_checked(4)? {
        (low, []) => number(low),
        (high, low) if low.len() == 4 => number(high) << 32 | number(low),
        _ => return None,
    };
    Some((Time::from_nanos(nanos(time)?).before(shift), cost))
}

/// A time: seconds in five bytes, nanoseconds in four.
fn nanos(bytes: &[u8]) -> Option<u64> {
    let (seconds, rest) = bytes.split_at_checked(5)?;
    Some(number(seconds).saturating_mul(Span::SECOND.nanos()).saturating_add(number(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_another_format_are_no_bucket() {
        let log = Limit::SlidingLog(SlidingLog::new(5, Span::SECOND).unwrap());
        let text = |bytes: &'static [u8]| RespValue::Text(bytes.into());
        let head = text(&[0; 17]);
        for elements in [vec![], vec![head.clone()], vec![text(b"x"), head.clone()], vec![head.clone(), text(&[0; 14])]]
        {
            assert_eq!(decode(&log, &[RespValue::Array(elements)], Time::ZERO), None);
        }
        let gcra = Limit::per_second(5).unwrap();
        assert_eq!(decode(&gcra, &[text(b"soon")], Time::ZERO), None);
        assert_eq!(decode(&gcra, &[], Time::ZERO), None);
    }

    #[test]
    fn a_log_counts_what_is_within_the_window() {
        let limit = Limit::SlidingLog(SlidingLog::new(5, Span::SECOND).unwrap());
        let entry =
            |seconds: u8, cost: u8| RespValue::Text(vec![seconds, 0, 0, 0, 0, 0, 0, 0, 0, cost, 0, 0, 0].into());
        let elements = vec![RespValue::Text(vec![0; 17].into()), entry(7, 2), entry(8, 3)];
        let (state, outcome) = decode(&limit, &[RespValue::Array(elements)], Time::from_secs(8)).unwrap();
        let at = Some(Time::from_secs(8));
        assert_eq!(state, BucketState::Log { entries: 1, oldest: at, newest: at });
        assert_eq!((outcome.used, outcome.remaining), (3, 2));
    }
}
