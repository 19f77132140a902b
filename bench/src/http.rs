//! The cost of a check over HTTP, beside a bare server and other rate limiters.
//!
//! Servers and generator have a core each. The generator never sleeps: in a virtual machine, waking it would be the most
//! expensive part of a reply, and the server would pay for it. CPU per check comes from the server's own accounting, which
//! is steadier than throughput on a shared machine.

mod field;
pub mod rules;

use std::time::Duration;

use tollgate_load::{LoadPace, LoadPlan, LoadRequest, WaitMode};

use self::field::{BATCH, DENIED, ECHO, LARGE, LIMITADOR, SMALL, THROTTLECRAB, TOLLGATE};
use crate::cores::Cores;
use crate::options::Options;
use crate::report::{BenchReport, Bound, progress};
use crate::servers::lineup::{Candidate, Lineup};
use crate::servers::round::{HEADS, RoundSettings, ServerRound, ServerRunner, ServerStandings};

/// Connections of all runs but the overload.
const CONNECTIONS: usize = 50;
/// Connections of the overload: sixteen times as many, all of them always waiting for a reply.
const CONNECTIONS_OVERLOAD: usize = 800;
/// Checks at once while tables are filled.
const FILL_CHECKS: usize = 100;
/// How many times the peak is offered then.
const OVERLOAD: f64 = 10.0;

/// Durations and rounds.
struct Times {
    warm_up: Duration,
    round: Duration,
    fill: Duration,
    rounds: usize,
}

impl Times {
    fn of(options: &Options) -> Times {
        let milliseconds = |quick, full| Duration::from_millis(if options.quick { quick } else { full });
        Times {
            warm_up: milliseconds(200, 500),
            round: milliseconds(800, 2_500),
            fill: milliseconds(2_000, 8_000),
            rounds: options.rounds,
        }
    }
}

/// Measures all servers that are available.
pub fn run(options: &Options, report: &mut BenchReport) -> anyhow::Result<()> {
    let times = Times::of(options);
    let cores = Cores::take();
    progress("# HTTP: servers");
    let field = field::start(&cores, options.tollgate.as_deref())?;
    report.section("HTTP over loopback", &introduction(&cores, &field));
    fill(&field, times.fill);
    let peak = peak(&field, &times, report);
    let half = half(&field, &times, &peak, report);
    overload(&field, &times, &peak, report);
    memory(&field, report);
    targets(&peak, &half, report);
    Ok(())
}

fn introduction(cores: &Cores, field: &Lineup<'_>) -> String {
    format!(
        "{} {CONNECTIONS} connections with keep-alive, one request at a time on each, keys of 16 bytes drawn uniformly: \
         100 k of them unless it says otherwise. The generator never sleeps. Closed loop first: the rate is what the \
         server manages. A round counts as noisy when others took a tenth of a core; it stays in.{}",
        cores.describe(),
        field.not_measured()
    )
}

/// Spends the one request that every key of the denied has, and fills the large table.
fn fill(field: &Lineup<'_>, time: Duration) {
    for candidate in [DENIED, LARGE].into_iter().filter_map(|name| field.of(name)) {
        progress(&format!("  filling: {}", candidate.name));
        let plan = LoadPlan {
            connections: CONNECTIONS,
            keys: candidate.keys,
            duration: time,
            warm_up: Duration::ZERO,
            wait: WaitMode::Spin,
            seed: 77,
            ..LoadPlan::default()
        };
        let batch = LoadRequest::post("/v1/check/batch").body(rules::batch(FILL_CHECKS)); // drawn at random: many are needed
        if let Err(error) = tollgate_load::run(&candidate.target, &batch, &plan, &mut |_| {}) {
            progress(&format!("  {}: {error}", candidate.name));
        }
    }
}

/// Closed loop, as fast as the server answers.
fn at_peak(times: &Times) -> RoundSettings {
    RoundSettings {
        connections: CONNECTIONS,
        pipeline: 1,
        pace: LoadPace::Closed,
        wait: WaitMode::Spin,
        warm_up: times.warm_up,
        duration: times.round,
    }
}

fn peak(field: &Lineup<'_>, times: &Times, report: &mut BenchReport) -> ServerStandings {
    let runner = |candidate| ServerRunner::new(candidate, at_peak(times));
    let standings = ServerStandings::race(&field.candidates.iter().map(runner).collect::<Vec<_>>(), times.rounds);
    report.table(&HEADS, &standings.rows(ECHO));
    standings.tell_noise(report);
    standings
}

/// The floor and ourselves.
fn both<'a>(field: &'a Lineup<'_>) -> impl Iterator<Item = &'a Candidate> {
    [ECHO, TOLLGATE].into_iter().filter_map(|name| field.of(name))
}

/// Both at the same rate, half of what Tollgate can (of what the echo can, if it is alone).
fn half(field: &Lineup<'_>, times: &Times, peak: &ServerStandings, report: &mut BenchReport) -> ServerStandings {
    let of = if peak.has(TOLLGATE) { TOLLGATE } else { ECHO };
    let per_second = (peak.sample(of, |round| round.rate).median() / 2.0).max(1.0);
    report.section(
        "Half of the peak, open loop",
        &format!(
            "{:.1} k checks/s, half of the peak of {of}. Latency counts from when a request was due.",
            per_second / 1e3
        ),
    );
    let order = RoundSettings { pace: LoadPace::Open { per_second }, ..at_peak(times) };
    let runners: Vec<ServerRunner<'_>> = both(field).map(|candidate| ServerRunner::new(candidate, order)).collect();
    let standings = ServerStandings::race(&runners, times.rounds);
    report.table(&HEADS, &standings.rows(ECHO));
    standings.tell_noise(report);
    standings
}

fn overload(field: &Lineup<'_>, times: &Times, peak: &ServerStandings, report: &mut BenchReport) {
    report.section(
        "Overload, open loop",
        &format!(
            "{OVERLOAD} times the peak of each is due, on {CONNECTIONS_OVERLOAD} connections. What no connection has \
             room for within a second is given up by the generator, and counted as unsent. Goodput is decisions per \
             second, the peak is that of the run before it, on {CONNECTIONS} connections. Latency counts from when a \
             request was due, the wait for a connection included."
        ),
    );
    let offered = |name: &str| peak.sample(name, |round| round.rate).median().max(1.0) * OVERLOAD;
    let calm_name = |name: &str| format!("{name}, peak");
    let pair = |candidate| {
        let calm = ServerRunner::new(candidate, at_peak(times));
        let order = RoundSettings {
            connections: CONNECTIONS_OVERLOAD,
            pace: LoadPace::Open { per_second: offered(&calm.name) },
            warm_up: times.round / 2,
            ..calm.order
        };
        [ServerRunner { name: calm_name(&calm.name), ..calm }, ServerRunner::new(candidate, order)]
    };
    let standings = ServerStandings::race(&both(field).flat_map(pair).collect::<Vec<_>>(), times.rounds.min(3));
    let kept = |name: &str| {
        let rate = |name: &str| standings.sample(name, |round| round.rate);
        (rate(&calm_name(name)).median(), rate(name).median(), rate(name).over(&rate(&calm_name(name))))
    };
    let row = |candidate: &Candidate| {
        let median = |figure: fn(&ServerRound) -> f64| standings.sample(candidate.name, figure).median();
        let (calm, rate, kept) = kept(candidate.name);
        vec![
            candidate.name.to_owned(),
            format!("{:.1}", calm / 1e3),
            format!("{:.1}", rate / 1e3),
            format!("{:.2}", kept.median()),
            format!("{:.2}", median(|round| round.cpu)),
            format!("{:.0} %", median(|round| round.busy) * 100.0),
            format!("{:.0}", median(|round| round.p99) / 1e3),
            format!("{:.0}", median(|round| round.unsent as f64) / 1e3),
            format!("{:.0}", median(|round| round.errors as f64)),
            megabytes(candidate.server.resident()),
        ]
    };
    let heads = [
        "candidate",
        "peak, k/s",
        "goodput, k/s",
        "of peak",
        "CPU µs per check",
        "core used",
        "p99 ms",
        "unsent, k",
        "errors",
        "resident MB",
    ];
    report.table(&heads, &both(field).map(row).collect::<Vec<_>>());
    standings.tell_noise(report);
    if standings.has(TOLLGATE) {
        let (_, _, kept) = kept(TOLLGATE);
        report.ratio("goodput at ten times the peak, of the peak", Bound::AtLeast(0.9), &kept);
    }
}

fn memory(field: &Lineup<'_>, report: &mut BenchReport) {
    report.section("Resident memory", "Just after the server began to listen, and at the end of all runs.");
    let own = field.candidates.iter().filter(|candidate| candidate.name != BATCH);
    let row = |candidate: &Candidate| {
        let server = &candidate.server;
        vec![candidate.name.to_owned(), megabytes(server.resident_at_start), megabytes(server.resident())]
    };
    report.table(&["server", "MB at start", "MB at the end"], &own.map(row).collect::<Vec<_>>());
    if let Some(candidate) = field.of(TOLLGATE) {
        let start = candidate.server.resident_at_start as f64 / 1e6;
        report.number("resident MB at start", Bound::AtMost(20.0), start);
    }
}

/// The targets of the project, for servers that were measured.
fn targets(peak: &ServerStandings, half: &ServerStandings, report: &mut BenchReport) {
    if !peak.has(TOLLGATE) {
        return;
    }
    let cpu = |name: &str| peak.sample(name, |round| round.cpu);
    let mut cost = |what: &str, most: f64, name: &str, of: &str| {
        report.ratio(what, Bound::AtMost(most), &cpu(name).over(&cpu(of)));
    };
    cost("CPU per check, one matching rule, of the hyper echo", 1.35, TOLLGATE, ECHO);
    cost("CPU of a denial, of an allow", 1.0, DENIED, TOLLGATE);
    cost("CPU per check in batches of 100, of a single check", 0.1, BATCH, TOLLGATE);
    cost("CPU per check, 10 k rules and 1 M keys, of 10 rules and 1 k keys", 1.3, LARGE, SMALL);
    let rate = |name: &str| peak.sample(name, |round| round.rate);
    for (peer, least) in [(THROTTLECRAB, 1.3), (LIMITADOR, 2.5)] {
        if peak.has(peer) {
            report.ratio(&format!("throughput, of {peer}"), Bound::AtLeast(least), &rate(TOLLGATE).over(&rate(peer)));
        }
    }
    // Otherwise the ratios above compare something else.
    let denied = peak.sample(DENIED, |round| round.denied);
    report.ratio("denied, where everything should be", Bound::AtLeast(0.99), &denied);
    report.number("errors at the peak, all candidates", Bound::AtMost(0.0), peak.errors() as f64);
    let p99 = |name: &str| half.sample(name, |round| round.p99);
    report.ratio("p99 at half of the peak, µs", Bound::AtMost(1_000.0), &p99(TOLLGATE));
    report.ratio("p99 at half of the peak, of the hyper echo", Bound::AtMost(1.5), &p99(TOLLGATE).over(&p99(ECHO)));
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}
