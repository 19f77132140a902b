//! The cost of a decision while the store is down.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tollgate_engine::Engine;
use tollgate_store::Store;

use super::callers::Callers;
use super::round::StoreTimes;
use super::server::Redis;
use super::tally::CheckTally;
use super::tollgate;
use crate::cores::Cores;
use crate::report::{BenchReport, Bound};
use crate::statistics::Sample;
use crate::workload::Workload;

/// Checks a second: few enough that none waits for another.
const PER_SECOND: f64 = 10_000.0;
const KEYS: u64 = 10_000;
/// How long the store is down before measuring: the breaker has opened.
const GONE: Duration = Duration::from_millis(1_500);

/// Kills a Redis of its own.
pub fn run(cores: &Cores, runtime: &Runtime, times: &StoreTimes, report: &mut BenchReport) -> anyhow::Result<()> {
    report.section(
        "The store down",
        "One rule, which falls back to this node's share; 10 k checks/s, open loop. First with Redis, then from the moment \
         it is killed, then with the breaker open, in turn with an engine that never had a store. Microseconds from when \
         a check was due; what is added is the difference to the one without a store, round by round.",
    );
    let redis = Redis::start(cores);
    let rules = || Workload { rules: 1, matching: 1, overrides: 0 }.compile();
    let engine = runtime.block_on(tollgate::exact_by_default(&redis.url(), rules()?))?;
    let memory = Arc::new(Engine::in_memory(rules()?));
    let mut seen = Seen { there: asked(&engine, runtime, times.round)?, ..Seen::default() };
    drop(redis);
    seen.killed = asked(&engine, runtime, GONE)?;
    for _ in 0..times.rounds {
        let (gone, alone) = (asked(&engine, runtime, times.round)?, asked(&memory, runtime, times.round)?);
        seen.added.extend([(gone.micros(0.999) - alone.micros(0.999)) / 1e3]);
        seen.gone.add(&gone);
        seen.alone.add(&alone);
    }
    seen.tell(report);
    Ok(())
}

/// The results.
#[derive(Default)]
struct Seen {
    there: CheckTally,
    killed: CheckTally,
    gone: CheckTally,
    alone: CheckTally,
    /// Milliseconds at p99.9, round by round.
    added: Sample,
}

impl Seen {
    fn tell(&self, report: &mut BenchReport) {
        let row = |name: &str, tally: &CheckTally| {
            let micros = |part| format!("{:.0}", tally.micros(part));
            let local = format!("{:.1} %", without_store(tally) * 100.0);
            vec![
                name.to_owned(),
                tally.checks.to_string(),
                local,
                micros(0.5),
                micros(0.99),
                micros(0.999),
                micros(1.0),
            ]
        };
        let rows = [
            row("Redis there", &self.there),
            row("Redis just killed", &self.killed),
            row("breaker open", &self.gone),
            row("in memory", &self.alone),
        ];
        report.table(&["state", "checks", "decided without the store", "p50", "p99", "p99.9", "longest"], &rows);
        report.ratio("store down: added at p99.9 with the breaker open, ms", Bound::AtMost(1.0), &self.added);
        let longest = self.killed.micros(1.0).max(self.gone.micros(1.0));
        report.number("store down: longest decision, ms", Bound::AtMost(50.0), longest / 1e3);
        // Otherwise the store was not down.
        report.number("store down: decided without it", Bound::AtLeast(1.0), without_store(&self.gone));
    }
}

fn without_store(tally: &CheckTally) -> f64 {
    tally.errors as f64 / tally.checks.max(1) as f64
}

fn asked<S: Store + 'static>(engine: &Arc<Engine<S>>, runtime: &Runtime, time: Duration) -> anyhow::Result<CheckTally> {
    Callers::new(engine, KEYS).open(runtime, PER_SECOND, time, 5)
}
