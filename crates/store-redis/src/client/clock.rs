//! An estimate of the store's clock.
//!
//! A reply that contains the store's time was created between the moments at which its call was sent and received, so
//! each reply bounds the offset of that clock from both sides. The bounds of the last seconds are intersected: the
//! fastest round trips decide, slow ones add nothing. Deadlines use the lower bound, which is never later than the true
//! time: a call that arrives after its deadline charges nothing. A call that could have been answered in time is still
//! executed, because the bound is off by at most one round trip.

use tollgate_core::{Span, Time};

/// Bounds expire after one to two of these: clocks drift.
const GENERATION: Span = Span::from_secs(5);
/// The store reports whole microseconds: the true time may be this much later.
const GRAIN: i128 = 999;
/// A change of the offset by more than this is a clock that was set.
const STEP: i128 = 1_000_000_000;

/// Bounds on the offset of the store's clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    low: i128,
    high: i128,
}

impl Bounds {
    fn of(sent: Time, received: Time, store: Time) -> Bounds {
        let ahead_of = |ours: Time| i128::from(store.nanos()) - i128::from(ours.nanos());
        Bounds { low: ahead_of(received), high: ahead_of(sent) + GRAIN }
    }

    fn and(self, other: Bounds) -> Bounds {
        Bounds { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    fn is_possible(self) -> bool {
        self.low <= self.high
    }
}

/// An estimate of the store's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockEstimate {
    newer: Option<Bounds>,
    older: Option<Bounds>,
    /// When the newer bounds began.
    began: Time,
    steps: u64,
}

impl ClockEstimate {
    /// An estimate without any observation.
    pub fn new() -> ClockEstimate {
        ClockEstimate::default()
    }

    /// Learns from a reply: when its call was sent and received, by this node's clock, and the store's time in between.
    /// True if the store's clock was set since the last observation.
    pub fn observe(&mut self, sent: Time, received: Time, store: Time) -> bool {
        let seen = Bounds::of(sent, received, store);
        let Some(known) = self.bounds() else {
            self.restart(seen, received);
            return false;
        };
        let joined = known.and(seen);
        if !joined.is_possible() {
            // The bounds contradict each other, so one of the clocks was set or drifts: the newer observation is right.
            self.restart(seen, received);
            let stepped = joined.low - joined.high > STEP;
            self.steps += u64::from(stepped);
            return stepped;
        }
        if received.since(self.began) >= GENERATION {
            (self.older, self.newer, self.began) = (self.newer, Some(seen), received);
        } else {
            self.newer = Some(self.newer.map_or(seen, |newer| newer.and(seen)));
        }
        false
    }

    /// The store's time at `time` of this node, never later than the true one. `None` before the first observation.
    pub fn at_least(&self, time: Time) -> Option<Time> {
        self.bounds().map(|bounds| shifted(time, bounds.low))
    }

    /// The store's time at `time` of this node: the middle of the bounds.
    pub fn about(&self, time: Time) -> Option<Time> {
        self.bounds().map(|bounds| shifted(time, (bounds.low + bounds.high) / 2))
    }

    /// How often the store's clock was set.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn bounds(&self) -> Option<Bounds> {
        match (self.newer, self.older) {
            (Some(newer), Some(older)) => Some(newer.and(older)),
            (one, other) => one.or(other),
        }
    }

    fn restart(&mut self, seen: Bounds, at: Time) {
        (self.newer, self.older, self.began) = (Some(seen), None, at);
    }
}

fn shifted(time: Time, by: i128) -> Time {
    let nanos = (i128::from(time.nanos()) + by).clamp(0, i128::from(u64::MAX));
    Time::from_nanos(nanos as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: u64 = 1_800_000_000_000_000_000;

    fn time(nanos: i128) -> Time {
        Time::from_nanos(u64::try_from(nanos).unwrap())
    }

    /// What `TIME` reports: whole microseconds.
    fn told(nanos: i128) -> Time {
        time(nanos / 1000 * 1000)
    }

    proptest! {
        #[test]
        fn deadlines_are_never_late_and_never_earlier_than_a_round_trip(
            ahead in -1_000_000_000_000i128..1_000_000_000_000,
            trips in prop::collection::vec((0u64..3_000_000_000, 0i128..50_000_000, 0i128..50_000_000), 1..100),
        ) {
            let (mut estimate, mut now) = (ClockEstimate::new(), i128::from(START));
            for (pause, there, back) in trips {
                let (sent, received) = (now, now + there + back);
                prop_assert!(!estimate.observe(time(sent), time(received), told(sent + there + ahead)));
                now = received + i128::from(pause);
                let truth = time(now + ahead);
                let early = estimate.at_least(time(now)).unwrap();
                prop_assert!(early <= truth, "a deadline would come late");
                prop_assert!(truth.since(early).nanos() as i128 <= there + back + GRAIN);
                let about = estimate.about(time(now)).unwrap();
                let off = truth.since(about).plus(about.since(truth)).nanos() as i128;
                prop_assert!(off <= (there + back) / 2 + GRAIN, "{off} off after {there} and {back}");
            }
            prop_assert_eq!(estimate.steps(), 0);
        }

        #[test]
        fn a_clock_that_is_set_is_noticed_and_followed(step in prop_oneof![-90_000i128..-2, 2i128..90_000]) {
            let (mut estimate, ms, step) = (ClockEstimate::new(), 1_000_000, step * 1_000_000_000);
            let mut at = i128::from(START);
            for _ in 0..10 {
                prop_assert!(!estimate.observe(time(at), time(at + ms), told(at)));
                at += 100 * ms;
            }
            prop_assert!(estimate.observe(time(at), time(at + ms), told(at + step)));
            prop_assert_eq!(estimate.steps(), 1);
            prop_assert!(!estimate.observe(time(at + ms), time(at + 2 * ms), told(at + ms + step)));
            let shown = estimate.about(time(at)).unwrap();
            prop_assert!(shown.since(time(at + step)) <= Span::from_millis(1));
        }

        #[test]
        fn a_clock_that_drifts_is_followed_without_alarm(parts_per_million in -200i128..200) {
            let (mut estimate, ms, mut at) = (ClockEstimate::new(), 1_000_000i128, 0i128);
            for _ in 0..1000 {
                let store = at + at * parts_per_million / 1_000_000 + i128::from(START);
                let ours = at + i128::from(START);
                prop_assert!(!estimate.observe(time(ours), time(ours + ms / 10), told(store)));
                let late = estimate.at_least(time(ours)).unwrap().since(time(store));
                prop_assert!(late <= Span::from_millis(3), "{late} late");
                at += 50 * ms;
            }
        }
    }

    #[test]
    fn nothing_is_known_before_the_first_reply() {
        assert_eq!(ClockEstimate::new().at_least(Time::ZERO), None);
        assert_eq!(ClockEstimate::new().about(Time::ZERO), None);
    }
}
