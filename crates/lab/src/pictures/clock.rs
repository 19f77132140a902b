//! A clock that steps back under constant requests.

use tollgate_core::{Ask, Gcra, Limit, Span, Time};
use tollgate_testkit::Bucket;

use super::load::{REQUESTS, START, WINDOW_MS};
use super::measure::{counted, seconds};
use super::{Picture, rates};
use crate::plot::{Plot, Scale, stacked};

const END_MS: u64 = 8_000;
/// When the step happens, in real time.
const STEP_MS: u64 = 4_300;
/// The interval between requests.
const EVERY_MS: u64 = 20;

pub(super) fn draw() -> Picture {
    let (far, locked) = panel("The clock steps back by an hour, under constant requests", 3_600_000);
    let (near, soon) = panel("The clock steps back by 700 ms", 700);
    let told = |waits: Vec<(&str, Option<u64>)>| {
        let told = waits.into_iter().map(|(name, wait)| match wait {
            Some(ms) => format!("{name} {ms} ms"),
            None => format!("{name} not within {} ms", END_MS - STEP_MS),
        });
        told.collect::<Vec<_>>().join(", ")
    };
    Picture {
        name: "clock-step",
        caption: format!(
            "Next admission after the step by an hour: {}; after the step by 700 ms: {}.",
            told(locked),
            told(soon)
        ),
        svg: stacked(&[far.height(330.0), near.x("seconds that really passed", Scale::Linear).height(330.0)]),
    }
}

/// One chart, and how long each algorithm admitted nothing after the step.
fn panel(title: &str, back_ms: u64) -> (Plot, Vec<(&'static str, Option<u64>)>) {
    let unclamped = Gcra::new(REQUESTS, Span::from_millis(WINDOW_MS), REQUESTS).expect("a valid limit").unclamped();
    let limits = [
        ("token bucket", rates::token_bucket()),
        ("fixed window", rates::fixed_window()),
        ("sliding window log", rates::sliding_log()),
        ("sliding window counter", rates::sliding_counter()),
        ("unbounded GCRA", Limit::Gcra(unclamped)),
    ];
    let mut plot = Plot::new(title).y("admitted", Scale::Linear).mark("the clock steps back", seconds(STEP_MS));
    let mut waits = Vec::new();
    for (name, limit) in limits {
        let mut bucket = Bucket::unused(limit.kind());
        let passes = |at: &u64| bucket.take(&limit, shown(*at, back_ms), &Ask::Consume(1), false).allowed;
        let admitted: Vec<u64> = (0..END_MS).step_by(EVERY_MS as usize).filter(passes).collect();
        plot = plot.steps(name, counted(&admitted, END_MS));
        waits.push((name, admitted.iter().find(|at| **at >= STEP_MS).map(|at| at - STEP_MS)));
    }
    (plot, waits)
}

/// What the clock shows.
fn shown(at: u64, back_ms: u64) -> Time {
    let now = START.after(Span::from_millis(at));
    if at < STEP_MS { now } else { now.before(Span::from_millis(back_ms)) }
}
