//! All algorithms side by side: under the shared load, and around the turn of a window.

use tollgate_core::{FixedWindow, Gcra, Limit, SlidingCounter, SlidingLog, Span};
use tollgate_testkit::Bucket;

use super::load::{END_MS, WINDOW_MS, run, shared, take};
use super::measure::{counted, curve, in_the_last, most, seconds, thinned};
use super::{Picture, queue, rates, slots};
use crate::plot::{Plot, Scale, stacked};

/// What each has admitted, and how much of it in the last second.
pub(super) fn together() -> Picture {
    let offered = shared();
    let held = slots::hold();
    debug_assert_eq!(held.offered, offered, "all meet the same load");
    let admitted = |limit: &Limit| run(limit, shared()).admitted;
    let runs = [
        ("token bucket", admitted(&rates::token_bucket())),
        ("fixed window", admitted(&rates::fixed_window())),
        ("sliding window log", admitted(&rates::sliding_log())),
        ("sliding window counter", admitted(&rates::sliding_counter())),
        ("leaky bucket as a queue", admitted(&queue::limit())),
        ("concurrency, 5 slots", held.admitted),
    ];
    let since_start = Plot::new("The same load on every algorithm: admitted since the start")
        .y("requests", Scale::Linear)
        .height(340.0);
    let in_a_second = Plot::new("Admitted in the last second, where the limit is 10 per second")
        .x("seconds", Scale::Linear)
        .y("requests", Scale::Linear)
        .height(320.0);
    let (mut panels, mut caption) = ((since_start, in_a_second), Vec::new());
    for (name, admitted) in &runs {
        let last_second = in_the_last(WINDOW_MS, admitted, END_MS);
        let shown = format!("{name}: {}", admitted.len());
        panels = (
            panels.0.steps(&shown, counted(admitted, END_MS)),
            panels.1.steps(name, curve(&thinned(&last_second, 20))),
        );
        caption.push(format!("{name} {} (at most {} in a second)", admitted.len(), most(&last_second)));
    }
    Picture {
        name: "comparison",
        caption: format!("Of {} offered: {}.", offered.len(), caption.join("; ")),
        svg: stacked(&[panels.0, panels.1.level("the limit", 10.0).muted()]),
    }
}

/// A hundred a minute.
const LIMIT: u64 = 100;
const MINUTE_MS: u64 = 60_000;
/// The picture begins that far into a window, so that windows turn at 10 s and at 70 s.
const BEGIN_MS: u64 = 50_000;

/// When a window turns, for the first time in the picture.
const TURN_MS: u64 = 10_000;
const BOUNDARY_END_MS: u64 = 80_000;

/// Two hundred before and two hundred after a turn, and two hundred just before the next one.
pub(super) fn boundary() -> Picture {
    let minute = Span::from_millis(MINUTE_MS);
    let limits = [
        ("token bucket", Gcra::new(LIMIT, minute, LIMIT).map(Limit::Gcra)),
        ("fixed window", FixedWindow::new(LIMIT, minute).map(Limit::FixedWindow)),
        ("sliding window log", SlidingLog::new(LIMIT, minute).map(Limit::SlidingLog)),
        ("sliding window counter", SlidingCounter::new(LIMIT, minute).map(Limit::SlidingCounter)),
    ];
    let offered: Vec<u64> = (9_000..11_000).step_by(5).chain((68_000..69_000).step_by(5)).collect();
    let mut around = Plot::new("100 per minute, 400 requests around the turn of a window: admitted so far")
        .x("seconds before and after the turn", Scale::Linear)
        .mark("window turns", 0.0)
        .height(330.0);
    let mut minutes = Plot::new("The same, and 200 more just before the next turn: admitted in the last minute")
        .x("seconds", Scale::Linear)
        .mark("window turns", seconds(TURN_MS))
        .mark("window turns", seconds(TURN_MS + MINUTE_MS))
        .level("the limit", LIMIT as f64)
        .muted()
        .height(340.0);
    let mut caption = Vec::new();
    for (name, limit) in limits {
        let limit = limit.expect("a valid limit");
        let mut bucket = Bucket::unused(limit.kind());
        let passes = |at: &u64| take(&mut bucket, &limit, BEGIN_MS + at).allowed;
        let admitted: Vec<u64> = offered.iter().copied().filter(passes).collect();
        let last_minute = in_the_last(MINUTE_MS, &admitted, BOUNDARY_END_MS);
        let two_seconds = most(&in_the_last(2_000, &admitted, BOUNDARY_END_MS));
        around = around.steps(&format!("{name}: {two_seconds}"), around_the_turn(&admitted));
        minutes = minutes.steps(name, curve(&thinned(&last_minute, 100)));
        caption.push(format!("{name} {two_seconds} within two seconds and {} within a minute", most(&last_minute)));
    }
    let caption = format!("At most: {}.", caption.join("; "));
    Picture { name: "boundary-burst", caption, svg: stacked(&[around, minutes]) }
}

/// How many were admitted up to each twentieth of a second within 1.25 s of the turn.
fn around_the_turn(admitted: &[u64]) -> Vec<(f64, f64)> {
    let so_far = |now: u64| admitted.iter().filter(|at| **at <= now).count();
    let ticks = (TURN_MS - 1_250..=TURN_MS + 1_250).step_by(50);
    ticks.map(|now| (seconds(now) - seconds(TURN_MS), so_far(now) as f64)).collect()
}
