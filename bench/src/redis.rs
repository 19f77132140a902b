//! The cost of a fleet's store: Tollgate beside bare Redis, a fleet beside a single node, and servers beside others.
//!
//! Redis has one core and this process the other, with one worker thread. Everything is measured side by side in
//! interleaved rounds; CPU per check comes from the processes' own accounting, which is steadier than throughput on a
//! shared machine.

mod callers;
mod cluster;
mod down;
mod exact;
mod fleet;
mod floor;
mod history;
mod hot;
mod keys;
mod leased;
mod memory;
mod pacing;
mod round;
mod server;
mod servers;
mod sizing;
mod tally;
mod tollgate;

use std::time::Duration;

use self::round::StoreTimes;
use self::server::Redis;
use self::sizing::Measured;
use crate::cores::Cores;
use crate::options::Options;
use crate::report::{BenchReport, Bound, progress};
use crate::servers::prepare::on_path;

fn times(options: &Options) -> StoreTimes {
    let milliseconds = |quick, full| Duration::from_millis(if options.quick { quick } else { full });
    StoreTimes {
        warm_up: milliseconds(150, 500),
        round: milliseconds(500, 2_500),
        rounds: options.rounds,
        stretch: milliseconds(4_000, 10_000),
    }
}

/// Measures all of it.
pub fn run(options: &Options, report: &mut BenchReport) -> anyhow::Result<()> {
    if on_path("redis-server").is_none() {
        report.section("Redis", "Not measured: redis-server is not on PATH; script/setup installs it.");
        return Ok(());
    }
    let times = times(options);
    let cores = Cores::take();
    let (redis, runtime) = (Redis::start(&cores), callers::runtime()?);
    report.section("Redis", &introduction(&cores));
    let users = if options.quick { 200_000 } else { 1_000_000 };
    let mut parts = Parts { options, report };
    let exact = parts.attempt("exact", |report| exact::run(&redis, &runtime, &times, report));
    parts.attempt("hot", |report| hot::run(&redis, &runtime, &times, report));
    let mixed = parts.attempt("fleet", |report| leased::run(&redis, &runtime, &times, report));
    let bucket = parts.attempt("memory", |report| memory::run(&redis, &runtime, users, report));
    let tollgate = options.tollgate.as_deref();
    let servers = parts.attempt("servers", |report| servers::run(&redis, &cores, tollgate, &times, report));
    parts.attempt("down", |report| down::run(&cores, &runtime, &times, report));
    parts.attempt("cluster", |report| cluster::run(&cores, &runtime, &times, report));
    sizing::run(&Measured { exact, servers, mixed, bucket }, report);
    Ok(())
}

/// The parts of the question, one after the other.
struct Parts<'a> {
    options: &'a Options,
    report: &'a mut BenchReport,
}

impl Parts<'_> {
    /// Runs one part, if requested. A failure is reported and counts as a missed target; the other parts still run.
    fn attempt<T>(&mut self, part: &str, measure: impl FnOnce(&mut BenchReport) -> anyhow::Result<T>) -> Option<T> {
        if !self.options.wants(part) {
            return None;
        }
        match measure(self.report) {
            Ok(measured) => Some(measured),
            Err(error) => {
                progress(&format!("  {part}: {error:#}"));
                self.report.note(&format!("**Not measured to the end: {error:#}**"));
                self.report.number(&format!("{part}: measured to the end"), Bound::AtLeast(1.0), 0.0);
                None
            }
        }
    }
}

fn introduction(cores: &Cores) -> String {
    format!(
        "redis-server without persistence. {} Callers and nodes live in the generator's process, with one worker \
         thread; but for the part about loss, a decision waits for a second instead of 25 ms, so that a busy machine does \
         not turn checks into fallbacks. A round counts as noisy when others took a tenth of a core; it stays in.",
        cores.describe()
    )
}
