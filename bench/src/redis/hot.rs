//! A hot leased key beside the in-memory store: the cost of a local decision on a shared bucket.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use tokio::runtime::Runtime;
use tokio::task::yield_now;
use tollgate_core::{Charge, Clock as _, Span, Time};
use tollgate_engine::Engine;
use tollgate_ruleset::Charges;
use tollgate_store::{MonotonicClock, Outcomes, Store};

use super::callers::{Callers, request};
use super::fleet::FleetNodes;
use super::round::{StoreRunner, StoreStandings, StoreTimes};
use super::server::Redis;
use super::tally::{CheckAnswer, CheckTally};
use super::tollgate;
use crate::report::{BenchReport, Bound};

const MEMORY: &str = "in memory: store";
const LEASED: &str = "leased: store";
const MEMORY_ALL: &str = "in memory: store, all allowed";
const LEASED_ALL: &str = "leased: store, all allowed";
const MEMORY_ENGINE: &str = "in memory: engine";
const LEASED_ENGINE: &str = "leased: engine";

/// Checks between two readings of the clock, and between two yields to other tasks.
const YIELD_AFTER: u64 = 64;

/// Races them.
pub fn run(
    redis: &Redis,
    runtime: &Runtime,
    times: &StoreTimes,
    report: &mut BenchReport,
) -> anyhow::Result<StoreStandings> {
    report.section(
        "A hot leased key beside the in-memory store",
        "One node, one key, one caller that asks again at once and lets others run after every 64 checks: limited to \
         10,000/s, so that nearly all is refused, and so generous that all is allowed. The store alone first, then the \
         whole engine.",
    );
    redis.flush();
    let rules = |limit: &str| {
        format!("rules:\n  - {{ name: hot, key_by: user_id, consistency: leased, limit: {{ {limit} }} }}\n")
    };
    let (tight, ample) =
        (rules("requests: 10000, window: 1s"), rules("requests: 1000000, window: 1s, burst: 1000000000"));
    let (leased, leased_all) =
        (FleetNodes::start(redis, runtime, 1, &tight)?, FleetNodes::start(redis, runtime, 1, &ample)?);
    let memory = Arc::new(Engine::in_memory(tollgate::rules(&tight)?));
    let memory_all = Arc::new(Engine::in_memory(tollgate::rules(&ample)?));
    let node = |nodes: &FleetNodes| nodes.each().first().cloned().ok_or_else(|| anyhow!("a fleet of no nodes"));
    let (leased, leased_all) = (node(&leased)?, node(&leased_all)?);
    let runners = [
        store(MEMORY, &memory, runtime)?,
        store(LEASED, &leased, runtime)?,
        store(MEMORY_ALL, &memory_all, runtime)?,
        store(LEASED_ALL, &leased_all, runtime)?,
        engine(MEMORY_ENGINE, &memory, runtime),
        engine(LEASED_ENGINE, &leased, runtime),
    ];
    let standings = StoreStandings::race(&runners, redis, times);
    standings.tell(MEMORY, report);
    let ratio = standings.ratio(LEASED, MEMORY, |round| round.rate);
    report.ratio("leased hot key, 10,000/s: throughput, of the in-memory store", Bound::AtLeast(0.8), &ratio);
    let ratio = standings.ratio(LEASED_ALL, MEMORY_ALL, |round| round.rate);
    report.ratio("leased hot key, all allowed: throughput, of the in-memory store", Bound::AtLeast(0.8), &ratio);
    report.number("leased hot key: errors", Bound::AtMost(0.0), standings.errors() as f64);
    Ok(standings)
}

/// The store alone, with the charge of its rule.
fn store<'a, S: Store + 'static>(
    name: &'static str,
    engine: &Arc<Engine<S>>,
    runtime: &'a Runtime,
) -> anyhow::Result<StoreRunner<'a>> {
    let mut charges = Charges::default();
    charges.identities = true;
    let made = engine.rules().rules.charges(&request("000000000000"), Time::ZERO, &mut charges);
    made.map_err(|error| anyhow!("{error:?}"))?;
    let charge = charges.charges.first().copied().ok_or_else(|| anyhow!("no charge was made"))?;
    let engine = engine.clone();
    Ok(StoreRunner::new(name, move |time, _| {
        Ok(runtime.block_on(runtime.spawn(take(engine.clone(), charge, time)))?)
    }))
}

async fn take<S: Store>(engine: Arc<Engine<S>>, charge: Charge, time: Duration) -> CheckTally {
    let (clock, within, mut outcomes) = (MonotonicClock::new(), Span::from_millis(25), Outcomes::new());
    let mut tally = CheckTally::default();
    let mut begun = clock.now().nanos();
    let end = begun + time.as_nanos() as u64;
    let charges = [charge];
    while begun < end {
        let mut answers = [0_u64; 3];
        for _ in 0..YIELD_AFTER {
            outcomes.clear();
            let taken = match engine.store().try_take(&charges, &mut outcomes) {
                Some(taken) => Ok(taken),
                None => engine.store().take(&charges, within, &mut outcomes).await,
            };
            let [allowed, denied, failed] = &mut answers;
            match taken {
                Ok(taken) if taken.allowed => *allowed += 1,
                Ok(_) => *denied += 1,
                Err(_) => *failed += 1,
            }
        }
        yield_now().await;
        let now = clock.now().nanos();
        for (answer, number) in
            [CheckAnswer::Allowed, CheckAnswer::Denied, CheckAnswer::Failed].into_iter().zip(answers)
        {
            tally.enter_many(answer, number, (now - begun) / YIELD_AFTER);
        }
        begun = now;
    }
    tally
}

fn engine<'a, S: Store + 'static>(
    name: &'static str,
    engine: &Arc<Engine<S>>,
    runtime: &'a Runtime,
) -> StoreRunner<'a> {
    let callers = Callers::new(engine, 1);
    StoreRunner::new(name, move |time, _| {
        let callers = callers.clone();
        let task = async move {
            let (clock, mut tally) = (MonotonicClock::new(), CheckTally::default());
            let mut begun = clock.now().nanos();
            let end = begun + time.as_nanos() as u64;
            while begun < end {
                for _ in 0..YIELD_AFTER {
                    tally.enter_many(callers.check(0).await, 1, 1_000);
                }
                yield_now().await;
                begun = clock.now().nanos();
            }
            tally
        };
        Ok(runtime.block_on(runtime.spawn(task))?)
    })
}
