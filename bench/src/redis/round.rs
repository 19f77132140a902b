//! One candidate, one round of load on a Redis; and all rounds of all candidates, interleaved.

use std::time::Duration;

use super::server::Redis;
use super::tally::CheckTally;
use crate::machine::Ticks;
use crate::process;
use crate::report::{BenchReport, progress};
use crate::statistics::Sample;
use crate::stopwatch::Stopwatch;

/// A round is noisy if other processes and the hypervisor take more than this part of a core.
const NOISE: f64 = 0.1;

/// How long everything takes.
#[derive(Clone, Copy, Debug)]
pub struct StoreTimes {
    pub warm_up: Duration,
    pub round: Duration,
    pub rounds: usize,
    /// One stretch of load of those that are not repeated.
    pub stretch: Duration,
}

/// Sends load for so long, drawn from that seed.
type Send<'a> = Box<dyn Fn(Duration, u64) -> anyhow::Result<CheckTally> + 'a>;

/// A candidate and its load.
pub struct StoreRunner<'a> {
    pub name: &'static str,
    send: Send<'a>,
    is_spinning: bool,
}

impl<'a> StoreRunner<'a> {
    pub fn new(name: &'static str, send: impl Fn(Duration, u64) -> anyhow::Result<CheckTally> + 'a) -> StoreRunner<'a> {
        StoreRunner { name, send: Box::new(send), is_spinning: false }
    }

    /// Its client never sleeps: its own CPU time is not reported.
    pub fn spinning(self) -> StoreRunner<'a> {
        StoreRunner { is_spinning: true, ..self }
    }
}

/// The figures of one round.
#[derive(Clone, Copy, Debug)]
pub struct StoreRound {
    /// Checks per second.
    pub rate: f64,
    /// CPU microseconds of Redis per check.
    pub redis: f64,
    /// And of this process; not a number where it spins.
    pub own: f64,
    /// Part of a core that Redis used.
    pub busy: f64,
    /// In microseconds.
    pub p50: f64,
    pub p99: f64,
    /// Script calls per check.
    pub calls: f64,
    /// Bytes that Redis read and wrote per check.
    pub bytes_in: f64,
    pub bytes_out: f64,
    pub denied: u64,
    pub errors: u64,
    /// Cores used by other processes, and taken by the hypervisor.
    pub foreign: f64,
    pub stolen: f64,
}

impl StoreRound {
    fn run(runner: &StoreRunner<'_>, redis: &Redis, times: &StoreTimes, seed: u64) -> anyhow::Result<StoreRound> {
        (runner.send)(times.warm_up, seed)?;
        let (figures, own, ticks, watch) = (redis.figures(), process::own_cpu(), Ticks::now(), Stopwatch::start());
        let tally = (runner.send)(times.round, seed + 1)?;
        let (wall, own, ticks) =
            (watch.stop().wall, process::own_cpu().saturating_sub(own) as f64, (ticks, Ticks::now()));
        let figures = redis.figures().since(&figures);
        // Decisions without the store do not count.
        let (checks, seconds) = ((tally.checks - tally.errors).max(1) as f64, wall / 1e9);
        Ok(StoreRound {
            rate: checks / seconds,
            redis: figures.cpu as f64 / 1e3 / checks,
            own: if runner.is_spinning { f64::NAN } else { own / 1e3 / checks },
            busy: figures.cpu as f64 / wall,
            p50: tally.micros(0.5),
            p99: tally.micros(0.99),
            calls: figures.calls as f64 / checks,
            bytes_in: figures.bytes_in as f64 / checks,
            bytes_out: figures.bytes_out as f64 / checks,
            denied: tally.denied,
            errors: tally.errors,
            foreign: (ticks.1.busy_since(ticks.0) - (own + figures.cpu as f64) / 1e9).max(0.0) / seconds,
            stolen: ticks.1.stolen_since(ticks.0) / seconds,
        })
    }

    fn is_noisy(&self) -> bool {
        self.foreign + self.stolen > NOISE
    }
}

/// The rounds of every runner, by name, in the order they were run.
#[derive(Debug, Default)]
pub struct StoreStandings(Vec<(&'static str, Vec<StoreRound>)>);

impl StoreStandings {
    /// Lets all of them run in turn: A B C A B C …
    pub fn race(runners: &[StoreRunner<'_>], redis: &Redis, times: &StoreTimes) -> StoreStandings {
        let mut standings = StoreStandings(runners.iter().map(|runner| (runner.name, Vec::new())).collect());
        for number in 1..=times.rounds {
            progress(&format!("  round {number} of {}", times.rounds));
            for (runner, (name, done)) in runners.iter().zip(&mut standings.0) {
                match StoreRound::run(runner, redis, times, number as u64 * 1_000) {
                    Ok(round) => done.push(round),
                    Err(error) => progress(&format!("  {name}: {error:#}")),
                }
            }
        }
        standings
    }

    /// One figure of one runner, over all rounds.
    pub fn sample(&self, name: &str, figure: impl Fn(&StoreRound) -> f64) -> Sample {
        let rounds = self.0.iter().find(|(known, _)| *known == name);
        rounds.iter().flat_map(|(_, rounds)| rounds.iter().map(&figure)).collect()
    }

    /// One figure of one runner as a ratio to that of another, round by round.
    pub fn ratio(&self, name: &str, of: &str, figure: impl Fn(&StoreRound) -> f64) -> Sample {
        self.sample(name, &figure).over(&self.sample(of, &figure))
    }

    /// The sum of errors.
    pub fn errors(&self) -> u64 {
        self.0.iter().flat_map(|(_, rounds)| rounds).map(|round| round.errors).sum()
    }

    /// The sum of denials.
    pub fn denied(&self) -> u64 {
        self.0.iter().flat_map(|(_, rounds)| rounds).map(|round| round.denied).sum()
    }

    /// The table, rates and CPU of Redis as ratios to those of `floor`, and what the machine did meanwhile.
    pub fn tell(&self, floor: &str, report: &mut BenchReport) {
        let (rate_floor, cpu_floor) = (self.sample(floor, |round| round.rate), self.sample(floor, |round| round.redis));
        let row = |(name, rounds): &(&'static str, Vec<StoreRound>)| {
            let sample = |figure: fn(&StoreRound) -> f64| rounds.iter().map(figure).collect::<Sample>();
            let (rate, cpu) = (sample(|round| round.rate), sample(|round| round.redis));
            let own = sample(|round| round.own).median();
            vec![
                (*name).to_owned(),
                format!("{:.1}", rate.median() / 1e3),
                format!("{:.0} %", rate.spread_percent()),
                format!("{:.2}", rate.over(&rate_floor).median()),
                format!("{:.2}", cpu.median()),
                format!("{:.0} %", cpu.spread_percent()),
                format!("{:.2}", cpu.over(&cpu_floor).median()),
                if own.is_nan() { "spins".to_owned() } else { format!("{own:.2}") },
                format!("{:.0} %", sample(|round| round.busy * 100.0).median()),
                format!("{:.0}", sample(|round| round.p50).median()),
                format!("{:.0}", sample(|round| round.p99).median()),
                format!("{:.3}", sample(|round| round.calls).median()),
                format!(
                    "{:.0} + {:.0}",
                    sample(|round| round.bytes_in).median(),
                    sample(|round| round.bytes_out).median()
                ),
                format!("{}/{}", rounds.iter().filter(|round| round.is_noisy()).count(), rounds.len()),
            ]
        };
        report.table(&HEADS, &self.0.iter().map(row).collect::<Vec<_>>());
        let all = || self.0.iter().flat_map(|(_, rounds)| rounds);
        let most = |figure: fn(&StoreRound) -> f64| all().map(figure).fold(0.0, f64::max);
        report.note(&format!(
            "In the worst round others took {:.2} cores, and the hypervisor {:.2}.",
            most(|round| round.foreign),
            most(|round| round.stolen)
        ));
    }
}

const HEADS: [&str; 14] = [
    "candidate",
    "k checks/s",
    "±",
    "of floor",
    "Redis CPU µs",
    "±",
    "of floor",
    "own CPU µs",
    "Redis core",
    "p50 µs",
    "p99 µs",
    "calls",
    "bytes in + out",
    "noisy",
];
