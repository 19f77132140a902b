//! How often the sliding window counter decides differently from an exact log, on realistic traffic.
//!
//! ```sh
//! cargo run --release -p tollgate-core --example accuracy
//! ```
//!
//! 100,000 clients, Zipf-distributed, over one simulated day. Each client's arrivals are Poisson, in bursts, Poisson
//! with a daily curve, or all of these. Limits are per client, so clients are simulated one after the other. The seed
//! is fixed and no time is measured: runs differ at most by how a platform rounds `ln` and `sin`. One result is in
//! bench/results.

use std::collections::VecDeque;
use std::io::{self, Write as _};

use tollgate_core::{Algorithm, Ask, Counter, Effect, Log, SlidingCounter, SlidingLog, Span, Time};

const CLIENTS: u32 = 100_000;
const DAY: f64 = 86_400.0;
const NANOS: f64 = 1e9;
const ONE: Ask = Ask::Consume(1);

/// What arrivals of a client look like.
struct Traffic {
    name: &'static str,
    /// Share of arrivals that bring a burst: a page load, a script, a retry loop.
    bursts: f64,
    /// How far the rate swings around its mean in the course of the day.
    swing: f64,
}

const TRAFFIC: [Traffic; 4] = [
    Traffic { name: "Poisson", bursts: 0.0, swing: 0.0 },
    Traffic { name: "bursts", bursts: 0.2, swing: 0.0 },
    Traffic { name: "daily curve", bursts: 0.0, swing: 0.8 },
    Traffic { name: "all of them", bursts: 0.2, swing: 0.8 },
];

/// Requests in the mean burst, and the mean gap between them in seconds.
const BURST: (f64, f64) = (20.0, 0.1);

/// Limit, window in seconds and requests of the whole day.
const LIMITS: [(u64, u64, f64); 3] = [(10, 1, 5e6), (100, 60, 2e6), (1000, 3600, 1e6)];

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let columns = [
        "limit",
        "traffic",
        "requests",
        "refused by the log",
        "wrong if all are counted",
        "admitted, of the log's",
        "admitted into a full window",
        "refused with room",
        "refused of clients whom the log never refused",
        "most in a window",
    ];
    writeln!(out, "| {} |\n| --- | ---{}", columns.join(" | "), " | ---:".repeat(8) + " |")?;
    for (limit, window, requests) in LIMITS {
        for traffic in &TRAFFIC {
            let counts = day(limit, window, requests, traffic);
            let share = |count: u64| count as f64 * 100.0 / counts.requests as f64;
            writeln!(
                out,
                "| {limit} per {window} s | {} | {} | {:.2} % | {:.4} % | {:.2} % | {:.3} % | {:.3} % | {:.4} % | {:.2} L |",
                traffic.name,
                counts.requests,
                share(counts.refused_by_log),
                share(counts.wrong_if_all_count),
                counts.admitted as f64 * 100.0 / counts.admitted_by_log as f64,
                share(counts.admitted_wrongly),
                share(counts.refused_wrongly),
                share(counts.innocent),
                counts.most as f64 / limit as f64,
            )?;
        }
    }
    Ok(())
}

#[derive(Default)]
struct Counts {
    requests: u64,
    refused_by_log: u64,
    admitted_by_log: u64,
    admitted: u64,
    /// Decided differently from the true count, where refused requests count too (`count_denied`): the measure usually
    /// quoted.
    wrong_if_all_count: u64,
    /// Admitted by the counter, although it had already admitted a full limit in the last window.
    admitted_wrongly: u64,
    /// Refused by the counter, although there was room for one more.
    refused_wrongly: u64,
    /// Refusals of clients whom the log never refused.
    innocent: u64,
    /// The most that the counter admitted within one window.
    most: u64,
}

fn day(limit: u64, window: u64, requests: f64, traffic: &Traffic) -> Counts {
    let mut random = Random(0x746f_6c6c_6761_7465);
    let span = Span::from_nanos(window * 1_000_000_000);
    let counter = SlidingCounter::new(limit, span).expect("a window");
    let log = SlidingLog::new(limit, span).expect("a window");
    let harmonic: f64 = (1..=CLIENTS).map(|rank| 1.0 / f64::from(rank)).sum();
    let mut counts = Counts::default();
    for rank in 1..=CLIENTS {
        let mean = requests / (harmonic * f64::from(rank));
        client(&counter, &log, &arrivals(mean, traffic, &mut random), &mut counts);
    }
    counts
}

/// One client through all algorithms. Each counter is judged by its own history, so that one error is not counted again
/// after two algorithms have diverged.
fn client(counter: &SlidingCounter, log: &SlidingLog, arrivals: &[u64], counts: &mut Counts) {
    let (mut state, mut all, mut exact) = (Counter::default(), Counter::default(), Log::default());
    let (mut admitted, mut seen) = (Trailing::default(), Trailing::default());
    let (refused_by_log, mut refused) = (counts.refused_by_log, 0);
    for &at in arrivals {
        let now = Time::from_nanos(at);
        let has_room = admitted.before(at, counter.window()) < counter.limit();
        let allowed = counter.admits(&state, now, &ONE);
        if allowed {
            counter.record(&mut state, now, &ONE, Effect::Charge);
            admitted.0.push_back(at);
        }
        let allowed_if_all_count = counter.admits(&all, now, &ONE);
        let right = seen.before(at, counter.window()) < counter.limit();
        counter.record(&mut all, now, &ONE, Effect::Force);
        seen.0.push_back(at);
        if log.admits(&exact, now, &ONE) {
            log.record(&mut exact, now, &ONE, Effect::Charge);
            counts.admitted_by_log += 1;
        } else {
            counts.refused_by_log += 1;
        }
        counts.requests += 1;
        refused += u64::from(!allowed);
        counts.admitted += u64::from(allowed);
        counts.wrong_if_all_count += u64::from(allowed_if_all_count != right);
        counts.admitted_wrongly += u64::from(allowed && !has_room);
        counts.refused_wrongly += u64::from(!allowed && has_room);
        counts.most = counts.most.max(admitted.0.len() as u64);
    }
    if counts.refused_by_log == refused_by_log {
        counts.innocent += refused;
    }
}

/// The exact count of the last window.
#[derive(Default)]
struct Trailing(VecDeque<u64>);

impl Trailing {
    fn before(&mut self, at: u64, window: Span) -> u64 {
        while self.0.front().is_some_and(|first| first + window.nanos() <= at) {
            self.0.pop_front();
        }
        self.0.len() as u64
    }
}

/// The times of a client's requests in the course of a day, in nanoseconds; `mean` requests, bursts included.
fn arrivals(mean: f64, traffic: &Traffic, random: &mut Random) -> Vec<u64> {
    // Long after the epoch, in the middle of the daily curve.
    const START: f64 = 20_000.0 * DAY;
    let per_event = 1.0 - traffic.bursts + traffic.bursts * BURST.0;
    let highest = mean / per_event / DAY * (1.0 + traffic.swing);
    let mut times = Vec::new();
    let mut at = 0.0;
    loop {
        at += random.wait(highest);
        if at >= DAY {
            break;
        }
        // Thinning: arrivals come at the highest rate, and as many are kept as the curve has at that time.
        let curve = (1.0 + traffic.swing * (at / DAY * std::f64::consts::TAU).sin()) / (1.0 + traffic.swing);
        if random.unit() >= curve {
            continue;
        }
        let mut within = at;
        times.push(((START + within) * NANOS) as u64);
        if random.unit() < traffic.bursts {
            while random.unit() >= 1.0 / BURST.0 {
                within += random.wait(1.0 / BURST.1);
                times.push(((START + within) * NANOS) as u64);
            }
        }
    }
    times.sort_unstable();
    times
}

/// SplitMix64: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// At least 0, below 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Time to the next of events that come at a rate.
    fn wait(&mut self, rate: f64) -> f64 {
        -(1.0 - self.unit()).ln() / rate
    }
}
