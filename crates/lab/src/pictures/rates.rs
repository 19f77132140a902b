//! The algorithms that count requests over time, each under the shared load.

use tollgate_core::{FixedWindow, Gcra, Limit, SlidingCounter, SlidingLog, Span};

use super::Picture;
use super::load::{END_MS, LoadRun, REQUESTS, WINDOW_MS, run, shared};
use super::measure::{Curve, counted, curve, in_the_last, most, seconds};
use crate::plot::{Plot, Scale, stacked};

/// What a picture says beside what is measured.
struct Rate {
    file: &'static str,
    title: &'static str,
    limit: Limit,
    /// The most that may have been admitted since the start, and its name.
    since_start: (Curve, &'static str),
    /// The most that may be admitted in any second, and its name.
    in_a_second: (u64, &'static str),
}

pub(super) fn all() -> Vec<Picture> {
    let per_window = || staircase(REQUESTS, WINDOW_MS);
    let rates = [
        Rate {
            file: "token-bucket",
            title: "Token bucket (GCRA): 10 per second, burst 10",
            limit: token_bucket(),
            since_start: (staircase(1, WINDOW_MS / REQUESTS), "bound: 10 + ⌊t / 100 ms⌋"),
            in_a_second: (2 * REQUESTS, "bound: 10 + 10"),
        },
        Rate {
            file: "fixed-window",
            title: "Fixed window: 10 per second",
            limit: fixed_window(),
            since_start: (per_window(), "bound: 10 per window"),
            in_a_second: (2 * REQUESTS, "bound: 2 · 10"),
        },
        Rate {
            file: "sliding-window-log",
            title: "Sliding window log: 10 per second",
            limit: sliding_log(),
            since_start: (per_window(), "bound: 10 per window"),
            in_a_second: (REQUESTS, "bound: 10, the limit"),
        },
        Rate {
            file: "sliding-window-counter",
            title: "Sliding window counter: 10 per second, estimated",
            limit: sliding_counter(),
            since_start: (per_window(), "bound: 10 per window"),
            in_a_second: (2 * REQUESTS, "bound: just under 2 · 10"),
        },
    ];
    rates.iter().map(Rate::draw).collect()
}

pub(super) fn token_bucket() -> Limit {
    Limit::Gcra(Gcra::new(REQUESTS, Span::from_millis(WINDOW_MS), REQUESTS).expect("a valid limit"))
}

pub(super) fn fixed_window() -> Limit {
    Limit::FixedWindow(FixedWindow::new(REQUESTS, Span::from_millis(WINDOW_MS)).expect("a valid limit"))
}

pub(super) fn sliding_log() -> Limit {
    Limit::SlidingLog(SlidingLog::new(REQUESTS, Span::from_millis(WINDOW_MS)).expect("a valid limit"))
}

pub(super) fn sliding_counter() -> Limit {
    Limit::SlidingCounter(SlidingCounter::new(REQUESTS, Span::from_millis(WINDOW_MS)).expect("a valid limit"))
}

/// [`REQUESTS`] at the start, and `rise` more after every `run`.
fn staircase(rise: u64, run: u64) -> Curve {
    let stairs = END_MS / run;
    let height = |stair: u64| (REQUESTS + stair * rise) as f64;
    let risen = (0..stairs).map(|stair| (seconds(stair * run), height(stair)));
    risen.chain([(seconds(END_MS), height(stairs - 1))]).collect()
}

impl Rate {
    fn draw(&self) -> Picture {
        let LoadRun { offered, admitted, remaining } = run(&self.limit, shared());
        let last_second = in_the_last(WINDOW_MS, &admitted, END_MS);
        let since_start = Plot::new(self.title)
            .y("requests", Scale::Linear)
            .steps("offered", counted(&offered, END_MS))
            .muted()
            .steps("admitted", counted(&admitted, END_MS))
            .steps(self.since_start.1, self.since_start.0.iter().copied())
            .height(270.0);
        let in_a_second = Plot::new("Admitted in the last second")
            .y("requests", Scale::Linear)
            .steps("admitted", curve(&last_second))
            .level(self.in_a_second.1, self.in_a_second.0 as f64);
        let in_a_second = match self.in_a_second.0 > REQUESTS {
            true => in_a_second.level("the limit", REQUESTS as f64),
            false => in_a_second,
        };
        let told = Plot::new("What a caller is told")
            .x("seconds", Scale::Linear)
            .y("requests", Scale::Linear)
            .steps("remaining", curve(&remaining));
        let most = most(&last_second);
        assert!(most <= self.in_a_second.0, "{}: {most} within a second", self.title);
        Picture {
            name: self.file,
            caption: format!(
                "{} of {} admitted; at most {most} of them within one second.",
                admitted.len(),
                offered.len()
            ),
            svg: stacked(&[since_start, in_a_second.height(210.0), told.height(220.0)]),
        }
    }
}
