//! The waiting times that an answer carries, over the life of one bucket.

use tollgate_core::{Ask, Gcra, Limit, Outcome, Span, Wait};
use tollgate_testkit::Bucket;

use super::Picture;
use super::load::moment;
use super::measure::seconds;
use crate::plot::{Plot, Scale};

const END_MS: u64 = 12_000;
/// What the waits are told for.
const COST: u64 = 3;

/// A bucket of five that refills at one per second: the traffic of `examples/token-bucket.test.yaml`.
const TRAFFIC: [(u64, u64); 7] = [(0, 5), (3_000, 1), (3_100, 1), (4_000, 1), (8_000, 1), (9_500, 1), (9_500, 2)];

pub(super) fn draw() -> Picture {
    let limit = Limit::Gcra(Gcra::new(1, Span::SECOND, 5).expect("a valid limit"));
    let mut bucket = Bucket::unused(limit.kind());
    let mut due = TRAFFIC.into_iter().peekable();
    let mut told: Vec<(u64, Outcome)> = Vec::new();
    for now in (0..=END_MS).step_by(50) {
        while let Some((at, cost)) = due.next_if(|(at, _)| *at <= now) {
            let outcome = bucket.take(&limit, moment(at), &Ask::Consume(cost), false);
            debug_assert!(outcome.allowed, "all of the traffic passes");
        }
        told.push((now, bucket.peek(&limit, moment(now), COST)));
    }
    let over_time = |hint: fn(&Outcome) -> Span| {
        let points = told.iter().map(move |(at, outcome)| (seconds(*at), hint(outcome).millis_ceil() as f64 / 1_000.0));
        points.collect::<Vec<_>>()
    };
    let plot = Plot::new("A bucket of five, one per second: the waits for a cost of three")
        .x("seconds", Scale::Linear)
        .y("seconds to wait", Scale::Linear)
        .line("reset_after", over_time(|outcome| outcome.reset_after))
        .line("retry_after, cost 3", over_time(|outcome| outcome.wait.span().unwrap_or(Span::ZERO)))
        .line("next_unit_after", over_time(|outcome| outcome.next_unit_after.unwrap_or(Span::ZERO)));
    let refused = told.iter().filter(|(_, outcome)| outcome.wait != Wait::None).count();
    Picture {
        name: "waits",
        caption: format!("Three units were refused at {refused} of {} moments looked at.", told.len()),
        svg: plot.height(360.0).to_svg(),
    }
}
