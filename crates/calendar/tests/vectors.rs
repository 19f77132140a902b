//! The published vectors, which `vectors/make.py` computed without this crate.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

use serde_json::Value;
use tollgate_calendar::{Anchor, Calendar, Every, Period, TimeZone};
use tollgate_core::Time;

const VECTORS: &str = include_str!("../vectors/calendars.json");

/// Fewer would mean that rows were lost.
const STEPS_MIN: usize = 120;
const ZONES_MIN: usize = 15;

struct Step {
    case: String,
    calendar: Calendar,
    at: Time,
    start: Time,
    end: Option<Time>,
}

#[test]
fn every_vector_holds() {
    let steps = steps();
    assert!(steps.len() >= STEPS_MIN, "{} steps", steps.len());
    for Step { case, calendar, at, start, end } in steps {
        let period = calendar.period_at(at);
        assert_eq!((period.start(), period.end()), (start, end), "{case} at {}", at.nanos() / 1_000_000_000);
        assert!(period.contains(at), "{case}");
    }
}

#[test]
fn neighbours_of_every_vector_touch_it() {
    for Step { case, calendar, start, end, .. } in steps() {
        let period = calendar.period_at(start);
        let (before, after) = (calendar.period_before(period), calendar.period_after(period));
        assert_eq!(before.and_then(Period::end), (start > Time::ZERO).then_some(start), "{case}");
        assert_eq!(after.map(Period::start), end, "{case}");
    }
}

#[test]
fn vectors_are_of_the_release_that_is_embedded() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    // The package numbers releases: 2026.5 is 2026e.
    let (year, number) = vectors["tzdata"].as_str().unwrap().split_once('.').unwrap();
    let letter = char::from(b'a' + number.parse::<u8>().unwrap() - 1);
    assert_eq!(
        TimeZone::database_version(),
        format!("{year}{letter}"),
        "run vectors/make.py with the release that the crate embeds, and review what changed"
    );
}

#[test]
fn vectors_cover_zones_with_unusual_rules() {
    let mut zones: Vec<&str> = steps().iter().map(|step| step.calendar.zone().name()).collect();
    zones.sort_unstable();
    zones.dedup();
    assert!(zones.len() >= ZONES_MIN, "{zones:?}");
}

fn steps() -> Vec<Step> {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    vectors["cases"].as_array().unwrap().iter().flat_map(steps_of_case).collect()
}

fn steps_of_case(case: &Value) -> Vec<Step> {
    let every = Every::parse(case["every"].as_str().unwrap()).unwrap();
    let anchor = match case["anchor"].as_str() {
        Some(text) => Anchor::parse(every, text).unwrap(),
        None => Anchor::default_of(every),
    };
    let calendar = Calendar::new(anchor, TimeZone::parse(case["zone"].as_str().unwrap()).unwrap());
    let step = |step: &Value| Step {
        case: case["name"].as_str().unwrap().to_owned(),
        calendar,
        at: time(step["at"].as_str().unwrap()),
        start: time(step["start"].as_str().unwrap()),
        end: step["end"].as_str().map(time),
    };
    case["steps"].as_array().unwrap().iter().map(step).collect()
}

fn time(text: &str) -> Time {
    let timestamp: jiff::Timestamp = text.parse().unwrap();
    Time::from_secs(u64::try_from(timestamp.as_second()).unwrap())
}
