//! Usage over the end of a period and over a change of the calendar.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

use proptest::prelude::*;
use tollgate_calendar::{Anchor, Calendar, Every, Period, TimeZone, UsageCarry};
use tollgate_core::{Span, Time};

fn time(text: &str) -> Time {
    let timestamp: jiff::Timestamp = text.parse().unwrap();
    Time::from_secs(u64::try_from(timestamp.as_second()).unwrap())
}

fn month(day: u8, zone: &str) -> Calendar {
    Calendar::new(Anchor::day_of_month(day).unwrap(), TimeZone::parse(zone).unwrap())
}

/// A bucket: what it recorded, and how often usage started anew.
struct Bucket {
    recorded: Period,
    starts: Vec<Time>,
}

impl Bucket {
    fn new(calendar: Calendar, now: Time) -> Bucket {
        Bucket { recorded: calendar.period_at(now), starts: Vec::new() }
    }

    fn request(&mut self, calendar: Calendar, now: Time) {
        let carry = UsageCarry::of(self.recorded, calendar.period_at(now), now);
        if let UsageCarry::StartAnew(_) = carry {
            self.starts.push(now);
        }
        self.recorded = carry.period();
    }
}

#[test]
fn usage_starts_anew_when_its_period_is_over() {
    let calendar = month(1, "UTC");
    let november = calendar.period_at(time("2026-11-18T12:00:00Z"));
    let (last, first) = (time("2026-11-30T23:59:59Z"), time("2026-12-01T00:00:00Z"));
    assert_eq!(UsageCarry::of(november, calendar.period_at(last), last), UsageCarry::Keep(november));
    let december = calendar.period_at(first);
    assert_eq!(UsageCarry::of(november, december, first), UsageCarry::StartAnew(december));
}

#[test]
fn a_change_of_the_anchor_keeps_usage_until_the_end_of_the_new_period() {
    let (old, new) = (month(1, "Europe/Berlin"), month(17, "Europe/Berlin"));
    let mut bucket = Bucket::new(old, time("2026-11-02T12:00:00Z"));
    let change = time("2026-11-20T12:00:00Z");
    bucket.request(new, change);
    assert_eq!(bucket.starts, []);
    assert_eq!(bucket.recorded, new.period_at(change));
    bucket.request(new, time("2026-12-01T12:00:00Z"));
    assert_eq!(bucket.starts, [], "the end of the old period no longer counts");
    bucket.request(new, time("2026-12-16T23:00:00Z"));
    assert_eq!(bucket.starts, [time("2026-12-16T23:00:00Z")]);
}

#[test]
fn a_change_of_the_zone_moves_the_end_by_hours() {
    let mut bucket = Bucket::new(month(1, "UTC"), time("2026-11-20T12:00:00Z"));
    let tokyo = month(1, "Asia/Tokyo");
    bucket.request(tokyo, time("2026-11-21T00:00:00Z"));
    bucket.request(tokyo, time("2026-11-30T14:59:59Z"));
    assert_eq!(bucket.starts, []);
    bucket.request(tokyo, time("2026-11-30T15:00:00Z"));
    bucket.request(tokyo, time("2026-12-01T00:00:00Z"));
    assert_eq!(bucket.starts.len(), 1, "the midnight of UTC does not start it a second time");
}

#[test]
fn a_clock_that_is_behind_does_not_start_usage_twice() {
    let calendar = month(1, "UTC");
    let mut bucket = Bucket::new(calendar, time("2026-11-20T12:00:00Z"));
    bucket.request(calendar, time("2026-12-01T00:00:00Z"));
    bucket.request(calendar, time("2026-11-30T23:59:59Z"));
    bucket.request(calendar, time("2026-12-01T00:00:01Z"));
    assert_eq!(bucket.starts.len(), 1);
}

#[test]
fn lifetime_quotas_keep_usage_until_they_get_a_period() {
    let now = time("2026-11-20T12:00:00Z");
    let forever = Calendar::NEVER.period_at(now);
    assert_eq!((forever, forever.end()), (Period::FOREVER, None));
    assert_eq!(UsageCarry::of(forever, forever, time("2400-01-01T00:00:00Z")), UsageCarry::Keep(forever));
    let november = month(1, "UTC").period_at(now);
    assert_eq!(UsageCarry::of(forever, november, now), UsageCarry::Keep(november));
    assert_eq!(UsageCarry::of(november, forever, now), UsageCarry::Keep(forever));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// With a request every hour: nothing at the change, then exactly the starts of the new calendar.
    #[test]
    fn a_change_starts_usage_early_at_most_once(
        days in (1..=31_u8, 1..=31_u8),
        zones in (0..590_usize, 0..590_usize),
        start in 0..1_700_000_000_u64,
        hours in 1..800_u64,
    ) {
        let zone = |index| TimeZone::all().nth(index).unwrap();
        let old = Calendar::new(Anchor::day_of_month(days.0).unwrap(), zone(zones.0));
        let new = Calendar::new(Anchor::day_of_month(days.1).unwrap(), zone(zones.1));
        let hour = |count: u64| Time::from_secs(start + count * 3_600);
        let mut bucket = Bucket::new(old, hour(0));
        for count in 0..hours {
            bucket.request(old, hour(count));
        }
        bucket.starts.clear();
        let is_over = bucket.recorded.end().is_some_and(|end| end <= hour(hours));
        let mut expected: Vec<Time> = is_over.then(|| hour(hours)).into_iter().collect();
        for count in hours..hours + 2_400 {
            bucket.request(new, hour(count));
            if count > hours && !new.period_at(hour(count - 1)).contains(hour(count)) {
                expected.push(hour(count));
            }
        }
        prop_assert_eq!(bucket.starts, expected);
    }
}

#[test]
fn a_period_fits_into_eight_bytes() {
    let calendars =
        [month(31, "Pacific/Apia"), Calendar::NEVER, Calendar::new(Anchor::default_of(Every::Year), TimeZone::UTC)];
    let times = ["1970-01-01T00:00:00Z", "2011-12-30T12:00:00Z", "2554-01-01T00:00:00Z", "2554-07-21T00:00:00Z"];
    for (calendar, at) in calendars.into_iter().flat_map(|calendar| times.map(|at| (calendar, time(at)))) {
        let period = calendar.period_at(at);
        assert_eq!(Period::from_bits(period.to_bits()), period);
        assert!(period.contains(at));
        assert_eq!(period.remaining(at), period.end().map(|end| end.since(at)));
    }
    for bits in [0, 1, u64::MAX, u64::MAX >> 4, 1 << 63] {
        assert!(Period::from_bits(bits).contains(Period::from_bits(bits).start()));
    }
    assert_eq!(Period::FOREVER.remaining(Time::from_secs(1)), None::<Span>);
}
