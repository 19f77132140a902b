//! Several nodes in this process, each with connections of its own, and load spread over them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, yield_now};
use tollgate_core::Clock as _;
use tollgate_store::MonotonicClock;

use super::callers::{Callers, gather};
use super::history::AdmissionLog;
use super::keys::{Draw, Zipf};
use super::pacing::open_loop;
use super::server::Redis;
use super::tally::{CheckAnswer, CheckTally};
use super::tollgate::{self, FleetEngine};

/// A caller that never waits yields to other tasks after this many checks.
pub const YIELD_AFTER: u64 = 64;

/// The nodes of a fleet on one Redis.
pub struct FleetNodes(Vec<Arc<FleetEngine>>);

impl FleetNodes {
    /// Starts nodes with the same rules.
    pub fn start(redis: &Redis, runtime: &Runtime, nodes: u64, rules: &str) -> anyhow::Result<FleetNodes> {
        let node = |number| runtime.block_on(tollgate::node(&redis.url(), number, nodes, rules));
        Ok(FleetNodes((0..nodes).map(node).collect::<anyhow::Result<_>>()?))
    }

    /// The nodes themselves.
    pub fn each(&self) -> &[Arc<FleetEngine>] {
        &self.0
    }

    /// Open loop over all nodes in turn, at `per_second` in all; `pick` draws the user.
    pub fn ask(
        &self,
        runtime: &Runtime,
        per_second: f64,
        time: Duration,
        mut pick: impl FnMut() -> u64 + Send + 'static,
    ) -> anyhow::Result<AdmissionLog> {
        let nodes: Vec<_> = self.0.iter().map(|node| Callers::new(node, 1)).collect();
        let clock = MonotonicClock::new();
        let (start, history) = (clock.now().nanos(), Arc::new(Mutex::new(AdmissionLog::default())));
        let written = history.clone();
        let task = runtime.spawn(async move {
            let mut turn = nodes.iter().cycle();
            open_loop(clock, per_second, time, |_| {
                let (node, user, history) = (turn.next().cloned(), pick(), written.clone());
                async move {
                    let Some(node) = node else { return };
                    let before = clock.now().nanos() - start;
                    let answer = node.check(user).await;
                    let after = clock.now().nanos() - start;
                    let mut history = history.lock();
                    history.decisions += 1;
                    match answer {
                        CheckAnswer::Allowed => history.admit(before, after),
                        CheckAnswer::Denied => {}
                        CheckAnswer::Failed => history.errors += 1,
                    }
                }
            })
            .await;
        });
        runtime.block_on(task)?;
        let history = std::mem::take(&mut *history.lock());
        Ok(history)
    }

    /// Closed loop of callers spread over the nodes; users by Zipf's law.
    pub fn mix(&self, runtime: &Runtime, callers: u64, zipf: &Arc<Zipf>, time: Duration) -> CheckTally {
        let clock = MonotonicClock::new();
        let end = clock.now().nanos() + time.as_nanos() as u64;
        let mut tasks = JoinSet::new();
        for (caller, node) in (0..callers).zip(self.0.iter().cycle()) {
            let (node, zipf, mut draw) = (Callers::new(node, 1), zipf.clone(), Draw::new(1, caller + 77));
            let task = async move {
                let mut tally = CheckTally::default();
                loop {
                    let begun = clock.now().nanos();
                    if begun >= end {
                        return tally;
                    }
                    let answer = node.check(zipf.rank(&mut draw)).await;
                    tally.enter(answer, clock.now().nanos() - begun);
                    if tally.checks % YIELD_AFTER == 0 {
                        yield_now().await;
                    }
                }
            };
            tasks.spawn_on(task, runtime.handle());
        }
        runtime.block_on(gather(tasks))
    }
}
