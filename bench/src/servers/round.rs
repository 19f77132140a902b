//! One candidate, one round of load; and all rounds of all candidates.

use std::time::Duration;

use tollgate_load::{LoadPace, LoadPlan, LoadReport, WaitMode};

use super::lineup::Candidate;
use crate::machine::Ticks;
use crate::process;
use crate::report::{BenchReport, progress};
use crate::statistics::Sample;
use crate::stopwatch::{Elapsed, Stopwatch};

/// A round is noisy if other processes and the hypervisor take more than this part of a core.
const NOISE: f64 = 0.1;

/// How a round is run.
#[derive(Clone, Copy, Debug)]
pub struct RoundSettings {
    pub connections: usize,
    /// Requests under way on each of them.
    pub pipeline: usize,
    pub pace: LoadPace,
    pub wait: WaitMode,
    pub warm_up: Duration,
    pub duration: Duration,
}

/// CPU nanoseconds of a server and of the store behind it.
#[derive(Clone, Copy, Debug)]
struct Spent {
    server: u64,
    backend: u64,
}

impl Spent {
    fn since(self, then: Spent) -> Spent {
        let less = |now: u64, then: u64| now.saturating_sub(then);
        Spent { server: less(self.server, then.server), backend: less(self.backend, then.backend) }
    }
}

/// The figures of one round.
#[derive(Clone, Copy, Debug)]
pub struct ServerRound {
    /// Checks that were decided, per second.
    pub rate: f64,
    /// CPU of the server per check, in microseconds.
    pub cpu: f64,
    /// CPU of the store behind it per check, in microseconds.
    pub backend: f64,
    /// Part of a core that the server used: well below 1 at a peak, something else was the bottleneck.
    pub busy: f64,
    /// In microseconds, from request or from when it was due.
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    /// Of the decisions.
    pub denied: f64,
    pub errors: u64,
    /// Requests that were due and never sent.
    pub unsent: u64,
    /// Cores used by other processes, and taken by the hypervisor.
    pub foreign: f64,
    pub stolen: f64,
}

impl ServerRound {
    /// Warms up, then measures.
    pub fn run(candidate: &Candidate, order: &RoundSettings, seed: u64) -> anyhow::Result<ServerRound> {
        let plan = LoadPlan {
            connections: order.connections,
            pipeline: order.pipeline,
            pace: order.pace,
            keys: candidate.keys,
            duration: order.warm_up,
            warm_up: Duration::ZERO,
            wait: order.wait,
            seed: seed.wrapping_mul(0x9e37_79b9),
            ..LoadPlan::default()
        };
        let load = |plan: &LoadPlan| tollgate_load::run(&candidate.target, &candidate.request, plan, &mut |_| {});
        load(&plan)?;
        let spent = || Spent { server: candidate.server.cpu(), backend: candidate.backend.map_or(0, process::cpu) };
        let (before, ticks, watch) = (spent(), Ticks::now(), Stopwatch::start());
        let outcome = load(&LoadPlan { duration: order.duration, seed: plan.seed + 1, ..plan })?;
        let (own, ticks) = (watch.stop(), (ticks, Ticks::now()));
        Ok(ServerRound::of(candidate.checks as f64, &outcome, spent().since(before), own, ticks))
    }

    fn of(
        checks: f64,
        outcome: &LoadReport,
        spent: Spent,
        own: Elapsed,
        (before, after): (Ticks, Ticks),
    ) -> ServerRound {
        let (server, backend) = (spent.server as f64, spent.backend as f64);
        let decided = (outcome.allowed + outcome.denied) as f64;
        let seconds = own.wall / 1e9;
        let micros = |part: f64| outcome.latency.quantile(part).as_secs_f64() * 1e6;
        ServerRound {
            rate: outcome.rate * decided / outcome.answered.max(1) as f64 * checks,
            cpu: server / 1e3 / (decided * checks),
            backend: backend / 1e3 / (decided * checks),
            busy: server / own.wall,
            p50: micros(0.5),
            p99: micros(0.99),
            p999: micros(0.999),
            denied: outcome.denied as f64 / decided.max(1.0),
            errors: outcome.errors.total(),
            unsent: outcome.unsent,
            foreign: (after.busy_since(before) - (own.cpu + server + backend) / 1e9).max(0.0) / seconds,
            stolen: after.stolen_since(before) / seconds,
        }
    }

    fn is_noisy(&self) -> bool {
        self.foreign + self.stolen > NOISE
    }
}

/// One runner of a race: a candidate, its settings and its name in the report.
#[derive(Clone, Debug)]
pub struct ServerRunner<'a> {
    pub name: String,
    pub candidate: &'a Candidate,
    pub order: RoundSettings,
}

impl<'a> ServerRunner<'a> {
    /// Under the candidate's own name.
    pub fn new(candidate: &'a Candidate, order: RoundSettings) -> ServerRunner<'a> {
        ServerRunner { name: candidate.name.to_owned(), candidate, order }
    }
}

/// The rounds of every runner, by name, in the order they were run.
#[derive(Debug, Default)]
pub struct ServerStandings(Vec<(String, Vec<ServerRound>)>);

impl ServerStandings {
    /// Lets all of them run in turn, so many rounds: A B C A B C …
    pub fn race(runners: &[ServerRunner<'_>], rounds: usize) -> ServerStandings {
        let mut standings = ServerStandings(runners.iter().map(|runner| (runner.name.clone(), Vec::new())).collect());
        for number in 1..=rounds {
            progress(&format!("  round {number} of {rounds}"));
            for (runner, (name, done)) in runners.iter().zip(&mut standings.0) {
                match ServerRound::run(runner.candidate, &runner.order, number as u64) {
                    Ok(round) => done.push(round),
                    Err(error) => progress(&format!("  {name}: {error}")),
                }
            }
        }
        standings
    }

    /// One figure of one runner, over all rounds.
    pub fn sample(&self, name: &str, figure: impl Fn(&ServerRound) -> f64) -> Sample {
        let rounds = self.0.iter().find(|(known, _)| *known == name);
        rounds.iter().flat_map(|(_, rounds)| rounds.iter().map(&figure)).collect()
    }

    /// Whether this runner has a round.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, rounds)| *known == name && !rounds.is_empty())
    }

    /// Rows for a table, CPU as a ratio to that of `floor`.
    pub fn rows(&self, floor: &str) -> Vec<Vec<String>> {
        self.rows_over(&self.sample(floor, |round| round.cpu))
    }

    /// The same, as a ratio to this CPU.
    pub fn rows_over(&self, floor: &Sample) -> Vec<Vec<String>> {
        let row = |(name, rounds): &(String, Vec<ServerRound>)| {
            let sample = |figure: fn(&ServerRound) -> f64| rounds.iter().map(figure).collect::<Sample>();
            let (rate, cpu) = (sample(|round| round.rate), sample(|round| round.cpu));
            vec![
                name.clone(),
                format!("{:.1}", rate.median() / 1e3),
                format!("{:.0} %", rate.spread_percent()),
                format!("{:.2}", cpu.median()),
                format!("{:.0} %", cpu.spread_percent()),
                format!("{:.2}", cpu.over(floor).median()),
                format!("{:.0} %", sample(|round| round.busy * 100.0).median()),
                format!("{:.0}", sample(|round| round.p50).median()),
                format!("{:.0}", sample(|round| round.p99).median()),
                format!("{:.0}", sample(|round| round.p999).median()),
                format!("{:.1} %", sample(|round| round.denied * 100.0).median()),
                rounds.iter().map(|round| round.errors).sum::<u64>().to_string(),
                format!("{}/{}", rounds.iter().filter(|round| round.is_noisy()).count(), rounds.len()),
            ]
        };
        self.0.iter().map(row).collect()
    }

    /// The sum of errors.
    pub fn errors(&self) -> u64 {
        self.0.iter().flat_map(|(_, rounds)| rounds).map(|round| round.errors).sum()
    }

    /// Reports the noise of the worst round.
    pub fn tell_noise(&self, report: &mut BenchReport) {
        let all = || self.0.iter().flat_map(|(_, rounds)| rounds);
        let most = |figure: fn(&ServerRound) -> f64| all().map(figure).fold(0.0, f64::max);
        let (foreign, stolen) = (most(|round| round.foreign), most(|round| round.stolen));
        report.note(&format!("In the worst round others took {foreign:.2} cores, and the hypervisor {stolen:.2}."));
    }
}

/// Headings of [`ServerStandings::rows`].
pub const HEADS: [&str; 13] = [
    "candidate",
    "k checks/s",
    "±",
    "CPU µs per check",
    "±",
    "of echo",
    "core used",
    "p50 µs",
    "p99 µs",
    "p99.9 µs",
    "denied",
    "errors",
    "noisy",
];
