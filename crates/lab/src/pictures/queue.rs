//! The leaky bucket as a queue: admissions, departures and delays.

use tollgate_core::{Limit, Queue, Span};
use tollgate_testkit::Bucket;

use super::Picture;
use super::load::{END_MS, REQUESTS, WINDOW_MS, shared, take};
use super::measure::{counted, seconds};
use crate::plot::{Plot, Scale, stacked};

/// The longest delay.
const MAX_DELAY_MS: u64 = 500;

pub(super) fn limit() -> Limit {
    let (period, max_delay) = (Span::from_millis(WINDOW_MS), Span::from_millis(MAX_DELAY_MS));
    Limit::Queue(Queue::new(REQUESTS, period, max_delay).expect("a valid limit"))
}

pub(super) fn draw() -> Picture {
    let (limit, offered) = (limit(), shared());
    let mut bucket = Bucket::unused(limit.kind());
    let told: Vec<_> = offered.iter().map(|at| (*at, take(&mut bucket, &limit, *at))).collect();
    let admitted: Vec<(u64, u64)> = told
        .iter()
        .filter(|(_, outcome)| outcome.allowed)
        .map(|(at, outcome)| (*at, outcome.delay.millis_ceil()))
        .collect();
    let joins: Vec<u64> = admitted.iter().map(|(at, _)| *at).collect();
    let leaves: Vec<u64> = admitted.iter().map(|(at, delay)| at + delay).collect();
    let closest = leaves.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(0);
    let longest = admitted.iter().map(|(_, delay)| *delay).max().unwrap_or(0);
    let flow = Plot::new("Leaky bucket as a queue: 10 per second, nobody waits longer than 500 ms")
        .y("requests", Scale::Linear)
        .steps("offered", counted(&offered, END_MS))
        .muted()
        .steps("admitted", counted(&joins, END_MS))
        .steps("proceeded", counted(&leaves, END_MS));
    let delays = Plot::new("Delay that each admitted request is told")
        .x("seconds", Scale::Linear)
        .y("ms", Scale::Linear)
        .dots("delay", admitted.iter().map(|(at, delay)| (seconds(*at), *delay as f64)))
        .level("max_delay", MAX_DELAY_MS as f64)
        .steps("", [(seconds(END_MS), 0.0)]); // nothing to see: the axis of both charts ends here
    Picture {
        name: "leaky-bucket-queue",
        caption: format!(
            "{} of {} admitted; they proceed at least {closest} ms apart and wait at most {longest} ms.",
            joins.len(),
            offered.len()
        ),
        svg: stacked(&[flow.height(290.0), delays.height(250.0)]),
    }
}
