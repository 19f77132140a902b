//! A cluster: do its primaries share the work?

use tokio::runtime::Runtime;
use tollgate_lab::redis::RedisCluster;

use super::callers::Callers;
use super::exact::KEYS;
use super::round::StoreTimes;
use super::server::{RedisCounters, figures};
use super::tollgate;
use crate::cores::Cores;
use crate::report::{BenchReport, Bound, short};
use crate::workload::Workload;

const PRIMARIES: usize = 3;
const CALLERS: u64 = 64;

/// Three primaries and their replicas, all on the servers' core.
pub fn run(cores: &Cores, runtime: &Runtime, times: &StoreTimes, report: &mut BenchReport) -> anyhow::Result<()> {
    report.section(
        "A cluster of three primaries",
        &format!(
            "Each with a replica, six processes on one core, so what can be shown here is not throughput but how evenly \
             {} users spread: who the buckets are about decides the slot, and each primary's part of checks and CPU \
             time is what a core of its own would have to bear. 64 callers, closed loop.",
            short(KEYS as usize)
        ),
    );
    let cluster = cores.on_server(RedisCluster::start);
    let rules = Workload { rules: 1, matching: 1, overrides: 0 }.compile()?;
    let engine = runtime.block_on(tollgate::exact(&cluster.url(), rules))?;
    let callers = Callers::new(&engine, KEYS);
    callers.closed(runtime, CALLERS, times.warm_up, 1)?;
    let read = || cluster.nodes.iter().take(PRIMARIES).map(figures).collect::<Vec<RedisCounters>>();
    let before = read();
    let time = times.stretch / 2;
    let tally = callers.closed(runtime, CALLERS, time, 2)?;
    let spent: Vec<RedisCounters> = read().iter().zip(&before).map(|(now, then)| now.since(then)).collect();
    let sum = |figure: fn(&RedisCounters) -> u64| spent.iter().map(figure).sum::<u64>().max(1) as f64;
    let part = |figure: fn(&RedisCounters) -> u64, of: &RedisCounters| figure(of) as f64 / sum(figure);
    let row = |(number, of): (usize, &RedisCounters)| {
        let percent = |figure| format!("{:.1} %", part(figure, of) * 100.0);
        vec![format!("primary {}", number + 1), percent(|of| of.reads), percent(|of| of.calls), percent(|of| of.cpu)]
    };
    report.table(
        &["primary", "buckets read", "script calls", "CPU of the three"],
        &spent.iter().enumerate().map(row).collect::<Vec<_>>(),
    );
    let rate = (tally.checks - tally.errors) as f64 / time.as_secs_f64();
    report.note(&format!(
        "{:.1} k checks/s with all of them on one core, {} errors; {:.2} µs of the primaries' CPU per check.",
        rate / 1e3,
        tally.errors,
        sum(|of| of.cpu) / 1e3 / tally.checks.max(1) as f64
    ));
    if let Some(troubles) = tollgate::troubles(engine.store()) {
        report.note(&format!("What kept the store from deciding: {troubles}."));
    }
    let busiest = spent.iter().map(|of| part(|of| of.reads, of)).fold(0.0, f64::max) * PRIMARIES as f64;
    report.number("cluster: checks of the busiest primary, of an even share", Bound::AtMost(1.05), busiest);
    report.number("cluster: errors", Bound::AtMost(0.0), tally.errors as f64);
    Ok(())
}
