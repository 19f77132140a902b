//! Exact mode beside the floor: throughput, CPU, latency at equal load, several rules at once.

use std::sync::Arc;

use tokio::runtime::Runtime;
use tollgate_load::{LoadPace, WaitMode};

use super::callers::Callers;
use super::floor::{FloorLoad, FloorScript};
use super::round::{StoreRunner, StoreStandings, StoreTimes};
use super::server::Redis;
use super::tollgate::{self, Exact};
use crate::report::{BenchReport, Bound, short};
use crate::workload::Workload;

/// Users, each with a bucket per rule.
pub const KEYS: u64 = 100_000;
/// Callers, and connections of the floor.
const CALLERS: usize = 64;
const CALLERS_MANY: u64 = 256;

pub const FLOOR: &str = "floor: 64 connections";
const FLOOR_PIPELINED: &str = "floor: 64 connections, 16 each";
const FLOOR_ALONE: &str = "floor: alone";
const FLOOR_ALONE_AWAKE: &str = "floor: alone, never sleeps";
pub const EXACT: &str = "Tollgate: 64 callers";
pub const EXACT_MANY: &str = "Tollgate: 256 callers";
const EXACT_ALONE: &str = "Tollgate: alone";
const EXACT_ALONE_THREE: &str = "Tollgate: alone, 3 rules";
const EXACT_OPEN: &str = "Tollgate";
const FLOOR_OPEN: &str = "floor";
pub const EXACT_THREE: &str = "Tollgate: 64 callers, 3 rules";

/// The floor, and two engines on the same Redis.
struct Field {
    floor: FloorScript,
    one: Arc<Exact>,
    three: Arc<Exact>,
}

/// Races them all, and holds them to what the project asks of itself.
pub fn run(
    redis: &Redis,
    runtime: &Runtime,
    times: &StoreTimes,
    report: &mut BenchReport,
) -> anyhow::Result<StoreStandings> {
    let engine = |rules| {
        let rules = Workload { rules, matching: rules, overrides: 0 }.compile()?;
        runtime.block_on(tollgate::exact(&redis.url(), rules))
    };
    let field = Field { floor: FloorScript::new(redis, KEYS)?, one: engine(1)?, three: engine(3)? };
    let standings = peak(&field, redis, runtime, times, report);
    half(&field, redis, runtime, times, &standings, report);
    for engine in [&field.one, &field.three] {
        if let Some(troubles) = tollgate::troubles(engine.store()) {
            report.note(&format!("What kept the store from deciding: {troubles}."));
        }
    }
    redis.flush();
    Ok(standings)
}

fn straight<'a>(floor: &'a FloorScript, name: &'static str, load: FloorLoad) -> StoreRunner<'a> {
    let runner = StoreRunner::new(name, move |time, seed| floor.run(&load, time, seed));
    if load.wait == WaitMode::Spin { runner.spinning() } else { runner }
}

fn peak(
    field: &Field,
    redis: &Redis,
    runtime: &Runtime,
    times: &StoreTimes,
    report: &mut BenchReport,
) -> StoreStandings {
    report.section(
        "Exact mode, closed loop",
        &format!(
            "One rule, {} users drawn uniformly, everything allowed. The floor is a script of one bucket, sent straight \
             to Redis; with 64 connections its sender never sleeps, so that Redis does not pay for waking it. Tollgate \
             is `Engine::decide` in this process, which sleeps while all callers wait; alone, it is held to a floor \
             that sleeps as well. Calls and bytes are per check.",
            short(KEYS as usize)
        ),
    );
    let load = |connections, pipeline, wait| FloorLoad { connections, pipeline, pace: LoadPace::Closed, wait };
    let callers = |name, engine: &Arc<Exact>, callers| {
        let load = Callers::new(engine, KEYS);
        StoreRunner::new(name, move |time, seed| load.closed(runtime, callers, time, seed))
    };
    let runners = [
        straight(&field.floor, FLOOR, load(CALLERS, 1, WaitMode::Spin)),
        callers(EXACT, &field.one, CALLERS as u64),
        straight(&field.floor, FLOOR_PIPELINED, load(CALLERS, 16, WaitMode::Spin)),
        callers(EXACT_MANY, &field.one, CALLERS_MANY),
        callers(EXACT_THREE, &field.three, CALLERS as u64),
        straight(&field.floor, FLOOR_ALONE, load(1, 1, WaitMode::Sleep)),
        callers(EXACT_ALONE, &field.one, 1),
        callers(EXACT_ALONE_THREE, &field.three, 1),
        straight(&field.floor, FLOOR_ALONE_AWAKE, load(1, 1, WaitMode::Spin)),
    ];
    let standings = StoreStandings::race(&runners, redis, times);
    standings.tell(FLOOR, report);
    let mut hold = |what: &str, bound, name, of, figure: fn(&super::round::StoreRound) -> f64| {
        report.ratio(what, bound, &standings.ratio(name, of, figure));
    };
    hold("exact: throughput of 64 callers, of the floor", Bound::AtLeast(0.8), EXACT, FLOOR, |round| round.rate);
    hold("exact: throughput alone, of the floor", Bound::AtLeast(0.65), EXACT_ALONE, FLOOR_ALONE, |round| round.rate);
    let batched = "exact: Redis CPU per check of 64 callers, of the floor pipelined by 16";
    hold(batched, Bound::AtMost(0.75), EXACT, FLOOR_PIPELINED, |round| round.redis);
    let batched = "exact: Redis CPU per check of 256 callers, of the floor pipelined by 16";
    hold(batched, Bound::AtMost(0.75), EXACT_MANY, FLOOR_PIPELINED, |round| round.redis);
    let several = "exact: Redis CPU of three rules in one decision, of one rule";
    hold(several, Bound::AtMost(2.2), EXACT_THREE, EXACT, |round| round.redis);
    // Or all of the above compares other things than it says.
    report.number("exact: errors and refusals", Bound::AtMost(0.0), (standings.errors() + standings.denied()) as f64);
    standings
}

/// Both at the same rate, half of what the floor can.
fn half(
    field: &Field,
    redis: &Redis,
    runtime: &Runtime,
    times: &StoreTimes,
    peak: &StoreStandings,
    report: &mut BenchReport,
) {
    let per_second = (peak.sample(FLOOR, |round| round.rate).median() / 2.0).max(1.0);
    report.section(
        "Exact mode, open loop",
        &format!(
            "{:.1} k checks/s, half of what the floor managed. Both senders spin; latency counts from when a check was due.",
            per_second / 1e3
        ),
    );
    let pace = LoadPace::Open { per_second };
    let callers = Callers::new(&field.one, KEYS);
    let runners = [
        straight(&field.floor, FLOOR_OPEN, FloorLoad { connections: CALLERS, pipeline: 1, pace, wait: WaitMode::Spin }),
        StoreRunner::new(EXACT_OPEN, |time, seed| callers.open(runtime, per_second, time, seed)).spinning(),
    ];
    let standings = StoreStandings::race(&runners, redis, times);
    standings.tell(FLOOR_OPEN, report);
    let p99 = standings.ratio(EXACT_OPEN, FLOOR_OPEN, |round| round.p99);
    report.ratio("exact: p99 at half of the floor's throughput, of the floor", Bound::AtMost(1.5), &p99);
    report.number("exact: errors at that rate", Bound::AtMost(0.0), standings.errors() as f64);
}
