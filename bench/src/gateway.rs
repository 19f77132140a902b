//! The cost of a request through the gateway, beside other proxies with a limit, and a bare one without.
//!
//! All candidates stand before the same upstream and forward the same request. The proxy that is measured has a core for
//! itself. The upstream and the generator poll and never sleep: waking them would be the most expensive part of a forwarded
//! request, and the proxy would pay for it.

mod configs;
mod field;
mod idle;
mod large_bodies;
mod plain_client;

use std::time::Duration;

use tollgate_load::{LoadPace, WaitMode};

use self::field::{ENVOY, FORWARDED, GatewayField, HYPER, NGINX, REFUSED, TOLLGATE, TOLLGATE_REFUSED};
use crate::cores::Cores;
use crate::options::Options;
use crate::report::{BenchReport, Bound, progress};
use crate::servers::lineup::Candidate;
use crate::servers::round::{RoundSettings, ServerRunner, ServerStandings};
use crate::statistics::Sample;

/// Connections of all runs but the idle ones.
const CONNECTIONS: usize = 50;

/// Headings of the tables.
const HEADS: [&str; 13] = [
    "candidate",
    "k requests/s",
    "±",
    "CPU µs per request",
    "±",
    "of bare hyper",
    "core used",
    "p50 µs",
    "p99 µs",
    "p99.9 µs",
    "refused",
    "errors",
    "noisy",
];

/// Durations and rounds.
struct GatewayTimes {
    warm_up: Duration,
    round: Duration,
    rounds: usize,
}

impl GatewayTimes {
    fn of(options: &Options) -> GatewayTimes {
        let milliseconds = |quick, full| Duration::from_millis(if options.quick { quick } else { full });
        GatewayTimes { warm_up: milliseconds(200, 500), round: milliseconds(800, 2_000), rounds: options.rounds.max(5) }
    }

    fn at_peak(&self) -> RoundSettings {
        RoundSettings {
            connections: CONNECTIONS,
            pipeline: 1,
            pace: LoadPace::Closed,
            wait: WaitMode::Yield,
            warm_up: self.warm_up,
            duration: self.round,
        }
    }
}

/// Measures all proxies that are available.
pub fn run(options: &Options, report: &mut BenchReport) -> anyhow::Result<()> {
    let times = GatewayTimes::of(options);
    let cores = Cores::take();
    progress("# gateway: servers");
    let field = field::start(&cores, options.tollgate.as_deref())?;
    let bodies = large_bodies::measure(&field); // first: what other runs have freed would hide what bodies take
    report.section("Forwarded requests, closed loop", &introduction(&cores, &field));
    let peak = race(&field, &FORWARDED, times.at_peak(), times.rounds);
    let floor = peak.sample(HYPER, |round| round.cpu);
    tell(&peak, &floor, report);
    report.section(
        "Refused requests, closed loop",
        "The same request for another path, of which a caller may send two in a long time: all others are refused, and the \
         upstream sees none of them. CPU is compared with a request that bare hyper forwards.",
    );
    let refused = race(&field, &REFUSED, times.at_peak(), times.rounds);
    tell(&refused, &floor, report);
    let half = half(&field, &times, &peak, report);
    idle::run(&field, report);
    large_bodies::tell(bodies, report);
    targets(&peak, &refused, &half, report);
    Ok(())
}

fn introduction(cores: &Cores, field: &GatewayField<'_>) -> String {
    format!(
        "{} {} {CONNECTIONS} connections with keep-alive, one request at a time on each: a GET with seven header fields, \
         answered with 119 bytes. The generator and the upstream never sleep. All limits count by the address of the caller, \
         and everything is allowed. nginx (`proxy_pass` with keep-alive, `limit_req`), HAProxy (a stick table) and Envoy (its \
         local rate limit filter, one bucket for all callers) have one limit and tell the upstream the caller's address; \
         Tollgate has three rules in memory and its defaults, so it also writes `X-Forwarded-Host` and `-Proto`, six fields \
         about the limits, and a decision id. Every candidate's answers were checked before it was timed. A round counts \
         as noisy when others took a tenth of a core; it stays in.{}",
        cores.describe(),
        cores.describe_upstream(),
        field.lineup.not_measured()
    )
}

/// Lets those of the names that are there run in turn.
fn race(field: &GatewayField<'_>, names: &[&str], order: RoundSettings, rounds: usize) -> ServerStandings {
    let candidates = names.iter().filter_map(|name| field.lineup.of(name));
    let runners: Vec<ServerRunner<'_>> = candidates.map(|candidate| ServerRunner::new(candidate, order)).collect();
    ServerStandings::race(&runners, rounds)
}

/// A table, CPU as a ratio to that of the floor.
fn tell(standings: &ServerStandings, floor: &Sample, report: &mut BenchReport) {
    report.table(&HEADS, &standings.rows_over(floor));
    standings.tell_noise(report);
}

/// All at the same rate: half of what Tollgate can (of what bare hyper can, if it is alone).
fn half(
    field: &GatewayField<'_>,
    times: &GatewayTimes,
    peak: &ServerStandings,
    report: &mut BenchReport,
) -> ServerStandings {
    let of = if peak.has(TOLLGATE) { TOLLGATE } else { HYPER };
    let per_second = (peak.sample(of, |round| round.rate).median() / 2.0).max(1.0);
    let text = format!(
        "{:.1} k requests/s, half of the peak of {of}. Latency counts from when a request was due.",
        per_second / 1e3
    );
    report.section("Half of the peak, open loop", &text);
    let order = RoundSettings { pace: LoadPace::Open { per_second }, ..times.at_peak() };
    let standings = race(field, &FORWARDED, order, times.rounds);
    tell(&standings, &standings.sample(HYPER, |round| round.cpu), report);
    standings
}

/// The goals, for those that were measured.
fn targets(peak: &ServerStandings, refused: &ServerStandings, half: &ServerStandings, report: &mut BenchReport) {
    let cpu = |standings: &ServerStandings, name: &str| standings.sample(name, |round| round.cpu);
    if peak.has(TOLLGATE) {
        for (name, most) in [(HYPER, 1.2), (NGINX, 1.6), (ENVOY, 1.0)] {
            if peak.has(name) {
                let what = format!("CPU per forwarded request, of {name}");
                report.ratio(&what, Bound::AtMost(most), &cpu(peak, TOLLGATE).over(&cpu(peak, name)));
            }
        }
    }
    if peak.has(TOLLGATE) && refused.has(TOLLGATE_REFUSED) {
        let ratio = cpu(refused, TOLLGATE_REFUSED).over(&cpu(peak, TOLLGATE));
        report.ratio("CPU of a refused request, of a forwarded one", Bound::AtMost(0.5), &ratio);
        let share = refused.sample(TOLLGATE_REFUSED, |round| round.denied);
        report.ratio("refused, where everything should be", Bound::AtLeast(0.99), &share);
    }
    if half.has(TOLLGATE) && half.has(NGINX) {
        let p99 = |name: &str| half.sample(name, |round| round.p99);
        let what = "p99 at half of the peak, of nginx";
        report.ratio(what, Bound::AtMost(1.5), &p99(TOLLGATE).over(&p99(NGINX)));
    }
    // Otherwise the ratios above compare something else.
    let forwarded = |standings: &ServerStandings| {
        let denied = FORWARDED.iter().map(|name| standings.sample(name, |round| round.denied).median());
        denied.filter(|share| share.is_finite()).fold(0.0, f64::max)
    };
    let errors = peak.errors() + refused.errors() + half.errors();
    report.number("refused, where nothing should be", Bound::AtMost(0.0), forwarded(peak).max(forwarded(half)));
    report.number("errors, all candidates", Bound::AtMost(0.0), errors as f64);
}

/// One candidate of every server.
fn servers<'a>(field: &'a GatewayField<'_>) -> impl Iterator<Item = &'a Candidate> {
    FORWARDED.iter().filter_map(|name| field.lineup.of(name))
}
