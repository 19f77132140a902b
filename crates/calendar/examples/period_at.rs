//! What a period costs: `cargo run --release -p tollgate-calendar --example period_at`.
//!
//! Per calendar: the time of one `period_at` over a year of scattered instants, and of one `bounds_at`.

use std::hint::black_box;

use tollgate_calendar::{Anchor, Calendar, Every, TimeZone, bounds_at};
use tollgate_core::{Clock, Time};
use tollgate_store::MonotonicClock;

const CALLS: u64 = 2_000_000;
const ROUNDS: usize = 5;

/// 2026-01-01 00:00 UTC.
const START: u64 = 1_767_225_600;
const YEAR: u64 = 365 * 86_400;
/// Relatively prime to the year, so that instants scatter over all of it.
const STEP: u64 = 7_919_003;

#[expect(clippy::print_stdout, reason = "a program for people")]
fn main() {
    let clock = MonotonicClock::new();
    println!("{:<22} {:<6} {:>10} {:>10}   ns per call", "zone", "every", "period_at", "bounds_at");
    for zone in ["UTC", "Asia/Kathmandu", "Europe/Berlin", "America/Sao_Paulo", "Africa/Casablanca"] {
        for every in Every::ALL.into_iter().filter(|every| *every != Every::Never) {
            let zone = TimeZone::parse(zone).unwrap_or_default();
            let calendar = Calendar::new(Anchor::default_of(every), zone);
            let now = Time::from_secs(START + 1_000);
            let computed = measure(&clock, |call| {
                let at = Time::from_secs(START + call * STEP % YEAR);
                black_box(calendar.period_at(black_box(at)));
            });
            let kept = measure(&clock, |call| {
                black_box(bounds_at(black_box(calendar), Time::from_nanos(now.nanos() + call)));
            });
            println!("{:<22} {every:<6} {computed:>10.1} {kept:>10.1}", zone.name());
        }
    }
}

/// Nanoseconds per call, of the best round.
fn measure(clock: &MonotonicClock, mut call: impl FnMut(u64)) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let start = clock.now();
        (0..CALLS).for_each(&mut call);
        clock.now().since(start).nanos()
    });
    rounds.min().unwrap_or(0) as f64 / CALLS as f64
}
