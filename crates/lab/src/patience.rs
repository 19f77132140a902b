//! Waiting for what sends no event: another process, the kernel, a failover. The only real sleeps of this crate.

use std::time::Duration;

use tollgate_core::{Clock, Span};
use tollgate_store::MonotonicClock;

/// How often a condition is checked.
const EVERY: Duration = Duration::from_millis(5);
/// How slow a machine may be before a test fails for it.
const SLOWNESS_MAX: f64 = 20.0;

/// Waits until `is_so`, and returns how long that took. Panics with `what` after `within`.
pub fn until(what: &str, within: Duration, mut is_so: impl FnMut() -> bool) -> Duration {
    match try_until(within, &mut is_so) {
        Some(took) => took,
        None => panic!("waited {within:?} in vain: {what}"),
    }
}

/// Waits until `is_so`, and returns how long that took; `None` after `within`, by a clock that runs as fast as this
/// process: where its sleeps take ten times as long as they should, so may the process that is waited for.
pub fn try_until(within: Duration, mut is_so: impl FnMut() -> bool) -> Option<Duration> {
    let watch = Watch::start();
    let mut waited = Duration::ZERO;
    loop {
        let round = Watch::start();
        if is_so() {
            return Some(watch.elapsed());
        }
        if waited >= within {
            return None;
        }
        let sleep = Watch::start();
        pause(EVERY);
        let slowness = sleep.elapsed().as_secs_f64() / EVERY.as_secs_f64();
        waited += round.elapsed().div_f64(slowness.clamp(1.0, SLOWNESS_MAX));
    }
}

/// Asks until there is an answer, without blocking the tasks of a runtime. Panics with `what` after `within`.
pub async fn eventually<T>(what: &str, within: Duration, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let watch = Watch::start();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(watch.elapsed() < within, "waited {within:?} in vain: {what}");
        tokio::time::sleep(EVERY).await;
    }
}

/// Waits until `is_so`, without blocking the tasks of a runtime. Panics with `what` after `within`.
pub async fn until_async(what: &str, within: Duration, mut is_so: impl AsyncFnMut() -> bool) {
    eventually(what, within, async || is_so().await.then_some(())).await;
}

/// Awaits what is promised within this time, by a clock that runs as fast as this process: see [`try_until`]. Panics with
/// `what` afterwards.
pub async fn promised<T>(what: &str, within: Duration, answer: impl Future<Output = T>) -> T {
    let mut answer = std::pin::pin!(answer);
    let mut waited = Duration::ZERO;
    while waited < within {
        let round = Watch::start();
        if let Ok(answer) = tokio::time::timeout(EVERY, answer.as_mut()).await {
            return answer;
        }
        let slowness = round.elapsed().as_secs_f64() / EVERY.as_secs_f64();
        waited += round.elapsed().div_f64(slowness.clamp(1.0, SLOWNESS_MAX));
    }
    panic!("promised within {within:?}: {what}")
}

/// Sleeps.
#[expect(clippy::disallowed_methods, reason = "the home of real waiting in tests of real processes")]
pub fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// Measures elapsed time.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    clock: MonotonicClock,
    since: tollgate_core::Time,
}

impl Watch {
    /// Starts now.
    pub fn start() -> Watch {
        let clock = MonotonicClock::new();
        Watch { clock, since: clock.now() }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        Duration::from(self.span())
    }

    /// Time since the start.
    pub fn span(&self) -> Span {
        self.clock.now().since(self.since)
    }
}
