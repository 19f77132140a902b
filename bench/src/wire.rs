//! The cost of a check over RESP and gRPC, beside an echo on the same library and other rate limiters.
//!
//! As for HTTP: servers and generator have a core each, the generator never sleeps, and CPU per check comes from the
//! server's own accounting. The floors do everything but limiting: they read and frame as Tollgate does, and send a
//! constant answer of the same size.

mod grpc;
mod resp;

use std::time::Duration;

use tollgate_load::{LoadPace, WaitMode};

use crate::cores::Cores;
use crate::options::Options;
use crate::report::{BenchReport, Bound, progress};
use crate::servers::lineup::Lineup;
use crate::servers::round::{HEADS, RoundSettings, ServerRunner, ServerStandings};

/// The rule of Tollgate: always matches, keyed by user.
const RULES: &str = "rules:\n  - { name: users, key_by: user_id, limit: { requests: 1000000, window: 60s, burst: \
                     1000000 } }\n";

/// How connections are used.
#[derive(Clone, Copy, Debug)]
struct Mode {
    name: &'static str,
    connections: usize,
    /// Requests under way on each of them.
    pipeline: usize,
}

/// Durations and rounds.
#[derive(Clone, Copy, Debug)]
struct Times {
    warm_up: Duration,
    round: Duration,
    rounds: usize,
}

/// Measures both protocols.
pub fn run(options: &Options, report: &mut BenchReport) -> anyhow::Result<()> {
    let milliseconds = |quick, full| Duration::from_millis(if options.quick { quick } else { full });
    let rounds = options.rounds.max(5);
    let times = Times { warm_up: milliseconds(150, 500), round: milliseconds(400, 2_000), rounds };
    let cores = Cores::take();
    let tollgate = options.tollgate.as_deref();
    if options.wants("resp") {
        progress("# RESP: servers");
        let lineup = resp::start(&cores, tollgate)?;
        report.section("RESP over loopback", &introduction(&cores, &lineup, resp::INTRODUCTION));
        resp::run(&Race { lineup: &lineup, floor: resp::ECHO, times }, report);
    }
    if options.wants("grpc") {
        progress("# gRPC: servers");
        let lineup = grpc::start(&cores, tollgate)?;
        report.section("gRPC over loopback", &introduction(&cores, &lineup, grpc::INTRODUCTION));
        grpc::run(&Race { lineup: &lineup, floor: grpc::ECHO, times }, report);
    }
    Ok(())
}

fn introduction(cores: &Cores, lineup: &Lineup<'_>, protocol: &str) -> String {
    format!(
        "{} {protocol} Keys of 16 bytes are drawn uniformly, 100 k of them, and everything is allowed. The generator never \
         sleeps. Closed loop first: the rate is what the server manages. A round counts as noisy when others took a tenth \
         of a core; it stays in.{}",
        cores.describe(),
        lineup.not_measured()
    )
}

/// The candidates of one protocol, and the floor they are compared with.
struct Race<'a> {
    lineup: &'a Lineup<'a>,
    floor: &'static str,
    times: Times,
}

impl Race<'_> {
    /// All candidates, closed loop.
    fn peak(&self, mode: Mode, report: &mut BenchReport) -> ServerStandings {
        let runners = self.lineup.candidates.iter().map(|candidate| ServerRunner::new(candidate, self.at_peak(mode)));
        self.run(&runners.collect::<Vec<_>>(), mode.name, "", report)
    }

    /// The floor and ourselves at the same rate: half of what the first of ours can (of the floor, if it is alone).
    fn half(&self, mode: Mode, ours: &[&str], peak: &ServerStandings, report: &mut BenchReport) -> ServerStandings {
        let of = ours.iter().copied().find(|name| peak.has(name)).unwrap_or(self.floor);
        let per_second = (peak.sample(of, |round| round.rate).median() / 2.0).max(1.0);
        let order = RoundSettings { pace: LoadPace::Open { per_second }, ..self.at_peak(mode) };
        let named = [self.floor].into_iter().chain(ours.iter().copied());
        let runners =
            named.filter_map(|name| self.lineup.of(name)).map(|candidate| ServerRunner::new(candidate, order));
        let text = format!(
            "{:.1} k checks/s, half of the peak of {of}. Latency counts from when a request was due.\n",
            per_second / 1e3
        );
        self.run(&runners.collect::<Vec<_>>(), &format!("{}, half of the peak, open loop", mode.name), &text, report)
    }

    fn run(
        &self,
        runners: &[ServerRunner<'_>],
        heading: &str,
        text: &str,
        report: &mut BenchReport,
    ) -> ServerStandings {
        report.part(heading, text);
        let standings = ServerStandings::race(runners, self.times.rounds);
        report.table(&HEADS, &standings.rows(self.floor));
        standings.tell_noise(report);
        report.number(&format!("{heading}: errors"), Bound::AtMost(0.0), standings.errors() as f64);
        standings
    }

    fn at_peak(&self, mode: Mode) -> RoundSettings {
        RoundSettings {
            connections: mode.connections,
            pipeline: mode.pipeline,
            pace: LoadPace::Closed,
            wait: WaitMode::Spin,
            warm_up: self.times.warm_up,
            duration: self.times.round,
        }
    }

    /// Holds one runner's CPU per check against that of the floor.
    fn cost(&self, what: &str, most: f64, name: &str, standings: &ServerStandings, report: &mut BenchReport) {
        if standings.has(name) {
            let cpu = |name: &str| standings.sample(name, |round| round.cpu);
            report.ratio(what, Bound::AtMost(most), &cpu(name).over(&cpu(self.floor)));
        }
    }

    /// Holds one runner's p99.9 against that of the floor.
    fn tail(&self, what: &str, name: &str, standings: &ServerStandings, report: &mut BenchReport) {
        if standings.has(name) {
            let p999 = |name: &str| standings.sample(name, |round| round.p999);
            report.ratio(what, Bound::AtMost(2.0), &p999(name).over(&p999(self.floor)));
        }
    }
}

/// Holds one runner's rate against that of another.
fn speed(what: &str, least: f64, (name, of): (&str, &str), standings: &ServerStandings, report: &mut BenchReport) {
    if standings.has(name) && standings.has(of) {
        let rate = |name: &str| standings.sample(name, |round| round.rate);
        report.ratio(what, Bound::AtLeast(least), &rate(name).over(&rate(of)));
    }
}
