//! Keeping to a known limit: `acquire` waits until there is room, first come, first served.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tollgate_core::{Algorithm, Ask, Clock, Effect, Gcra, Limit, Span, Tat, Wait};
use tollgate_store::MonotonicClock;

/// Keeps calls of this process to one token bucket.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use tollgate_retry::{Pacer, Span};
/// let pacer = Pacer::per_second(10).unwrap(); // ten at once, then one every 100 ms
/// for _ in 0..10 {
///     pacer.acquire(1, Span::SECOND).await.unwrap();
/// }
/// # });
/// ```
///
/// Callers wait in the order in which they came: a large acquisition is not overtaken by small ones. A caller that gives
/// up (its future is dropped) has taken nothing, and the next one moves up.
pub struct Pacer {
    limit: Gcra,
    state: Mutex<Tat>,
    clock: Arc<dyn Clock>,
}

/// Why nothing was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaceError {
    /// More than the limit ever allows at once.
    Never,
    /// Not within the deadline.
    TooLate,
}

impl Pacer {
    /// A pacer of this token bucket; `None` if the limit is of another kind.
    pub fn new(limit: Limit) -> Option<Pacer> {
        Pacer::with_clock(limit, Arc::new(MonotonicClock::new()))
    }

    /// `requests` per second, and as many at once.
    pub fn per_second(requests: u64) -> Option<Pacer> {
        Limit::per_second(requests).ok().and_then(Pacer::new)
    }

    /// A pacer on a clock of the caller, which must move as Tokio's timer does.
    pub fn with_clock(limit: Limit, clock: Arc<dyn Clock>) -> Option<Pacer> {
        match limit {
            Limit::Gcra(limit) => Some(Pacer { limit, state: Mutex::default(), clock }),
            _ => None,
        }
    }

    /// Takes `units`, waiting for them for at most `within`. Returns how long it waited.
    pub async fn acquire(&self, units: u64, within: Span) -> Result<Span, PaceError> {
        let start = self.clock.now();
        let turn = tokio::time::timeout(Duration::from(within), self.state.lock());
        let mut state = turn.await.map_err(|_| PaceError::TooLate)?;
        let ask = Ask::Consume(units);
        loop {
            let now = self.clock.now();
            let allowed = self.limit.admits(&state, now, &ask);
            if allowed {
                self.limit.record(&mut state, now, &ask, Effect::Charge);
                return Ok(now.since(start));
            }
            match self.limit.view(&state, now, &ask, false, 0).wait {
                Wait::For(wait) if wait <= within.minus(now.since(start)) => {
                    tokio::time::sleep(Duration::from(wait)).await;
                }
                Wait::For(_) => return Err(PaceError::TooLate),
                Wait::Never | Wait::None => return Err(PaceError::Never),
            }
        }
    }
}

impl fmt::Debug for Pacer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pacer").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl fmt::Display for PaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PaceError::Never => "more than the limit ever allows at once",
            PaceError::TooLate => "not within the deadline",
        })
    }
}

impl std::error::Error for PaceError {}
