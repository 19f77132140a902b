//! Load from inside this process: any number of callers of an engine, on one worker thread.
//!
//! The worker is pinned to the generator's core, as a node with one core would be. A closed loop sleeps while all callers
//! wait for the store, as a server does; an open loop has to watch the clock, and spins as the floor's sender does.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tollgate_core::{Attribute, Clock as _, Request};
use tollgate_engine::{DecidedBy, Decision, Engine, Verdict};
use tollgate_store::{MonotonicClock, Store};

use super::keys::{Draw, digits};
use super::pacing::open_loop;
use super::tally::{CheckAnswer, CheckTally};

/// A runtime with one worker, on the core of this thread.
pub fn runtime() -> anyhow::Result<Runtime> {
    Ok(Builder::new_multi_thread().worker_threads(1).enable_all().build()?)
}

/// Callers of an engine.
pub struct Callers<S> {
    engine: Arc<Engine<S>>,
    keys: u64,
}

impl<S> Clone for Callers<S> {
    fn clone(&self) -> Self {
        Callers { engine: self.engine.clone(), keys: self.keys }
    }
}

impl<S: Store + 'static> Callers<S> {
    /// Callers of one engine, for so many users.
    pub fn new(engine: &Arc<Engine<S>>, keys: u64) -> Callers<S> {
        Callers { engine: engine.clone(), keys }
    }

    /// Closed loop: each caller asks again as soon as it is answered.
    pub fn closed(&self, runtime: &Runtime, callers: u64, time: Duration, seed: u64) -> anyhow::Result<CheckTally> {
        let clock = MonotonicClock::new();
        let end = clock.now().nanos() + time.as_nanos() as u64;
        let mut tasks = JoinSet::new();
        for caller in 0..callers {
            let this = self.clone();
            let mut draw = Draw::new(self.keys, seed.wrapping_mul(1_000_003) + caller);
            let task = async move {
                let mut tally = CheckTally::default();
                let mut begun = clock.now().nanos();
                while begun < end {
                    let answer = this.check(draw.number()).await;
                    let now = clock.now().nanos();
                    tally.enter(answer, now - begun);
                    begun = now;
                }
                tally
            };
            tasks.spawn_on(task, runtime.handle());
        }
        Ok(runtime.block_on(gather(tasks)))
    }

    /// Open loop: checks at a fixed rate. Latency counts from when a check was due.
    pub fn open(&self, runtime: &Runtime, per_second: f64, time: Duration, seed: u64) -> anyhow::Result<CheckTally> {
        let (this, clock, tally) = (self.clone(), MonotonicClock::new(), Arc::new(Mutex::new(CheckTally::default())));
        let (mut draw, written) = (Draw::new(self.keys, seed.wrapping_mul(1_000_003)), tally.clone());
        let task = runtime.spawn(async move {
            open_loop(clock, per_second, time, |due| {
                let (this, tally, key) = (this.clone(), written.clone(), draw.number());
                async move {
                    let answer = this.check(key).await;
                    tally.lock().enter(answer, clock.now().nanos().saturating_sub(due));
                }
            })
            .await;
        });
        runtime.block_on(task)?;
        let tally = std::mem::take(&mut *tally.lock());
        Ok(tally)
    }

    /// One check of one user.
    pub async fn check(&self, user: u64) -> CheckAnswer {
        let digits = digits(user);
        let user = std::str::from_utf8(&digits).unwrap_or_default();
        answer(&self.engine.decide(&request(user)).await)
    }
}

/// The sum of what all of them counted.
pub async fn gather(mut tasks: JoinSet<CheckTally>) -> CheckTally {
    let mut sum = CheckTally::default();
    while let Some(done) = tasks.join_next().await {
        if let Ok(tally) = done {
            sum.add(&tally);
        }
    }
    sum
}

/// The request of all scenarios.
pub fn request(user: &str) -> Request<'_> {
    Request::new()
        .with(Attribute::UserId, user)
        .with(Attribute::Tier, "free")
        .with(Attribute::Endpoint, "GET /orders/items/17")
}

/// A decision without the store counts as a failure: it is not what is measured.
pub fn answer(decision: &Decision) -> CheckAnswer {
    match (&decision.verdict, decision.decided_by) {
        (_, DecidedBy::Open | DecidedBy::Closed | DecidedBy::Fallback | DecidedBy::Overflow)
        | (Verdict::Invalid(_), _) => CheckAnswer::Failed,
        (Verdict::Allow, _) => CheckAnswer::Allowed,
        (Verdict::Deny, _) => CheckAnswer::Denied,
    }
}
