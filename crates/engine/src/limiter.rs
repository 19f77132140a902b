//! A limiter that waits for room, on top of the engine and its rules.

use std::fmt;

use tollgate_core::{Request, Span, Wait};
use tollgate_store::Store;

use crate::{Decision, Engine, random};

/// Acquires units for one request, waiting for them where needed.
#[derive(Debug)]
pub struct Limiter<'a, S> {
    engine: &'a Engine<S>,
    request: Request<'a>,
    jitter: Span,
}

/// Why no units were acquired. Nothing was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquireError {
    /// The cost exceeds the capacity, or the limit is zero.
    Never,
    /// They are not available within the timeout.
    TimedOut {
        /// How long the wait would have been, as far as is known.
        wait: Span,
    },
    /// The request is malformed.
    Invalid,
}

impl<S: Store> Engine<S> {
    /// Acquires units for `request`, waiting for them where needed.
    pub fn limiter<'a>(&'a self, request: Request<'a>) -> Limiter<'a, S> {
        Limiter { engine: self, request, jitter: Span::ZERO }
    }
}

impl<'a, S: Store> Limiter<'a, S> {
    /// Adds a random span of up to `jitter` to every wait, so that many waiters do not return at the same moment.
    pub fn with_jitter(self, jitter: Span) -> Limiter<'a, S> {
        Limiter { jitter, ..self }
    }

    /// Waits until `n` units are available and takes them. Returns the time waited.
    pub async fn acquire(&self, n: u64) -> Result<Span, AcquireError> {
        self.try_acquire(n, Span::MAX).await
    }

    /// [`acquire`](Limiter::acquire), which fails at once if the wait would exceed `timeout`.
    pub async fn try_acquire(&self, n: u64, timeout: Span) -> Result<Span, AcquireError> {
        let mut waited = Span::ZERO;
        loop {
            if timeout < Span::MAX {
                let asked = self.engine.decide(&self.request.cost(n).peek()).await;
                self.in_time(&asked, waited, timeout)?;
            }
            let decision = self.engine.decide(&self.request.cost(n)).await;
            match self.step(&decision, waited, timeout)? {
                Step::Done(Span::ZERO) => return Ok(waited),
                Step::Done(delay) => {
                    self.engine.sleep.wait(delay).await;
                    return Ok(waited.plus(delay));
                }
                Step::Again(span) => {
                    self.engine.sleep.wait(span).await;
                    waited = waited.plus(span);
                }
            }
        }
    }

    /// Fails if the delay of a queue exceeds the timeout. Checked before the charge, which takes the place in the
    /// queue.
    fn in_time(&self, asked: &Decision, waited: Span, timeout: Span) -> Result<(), AcquireError> {
        let left = timeout.minus(waited);
        match asked.delay() {
            delay if delay > left => Err(AcquireError::TimedOut { wait: delay }),
            _ => Ok(()),
        }
    }

    fn step(&self, decision: &Decision, waited: Span, timeout: Span) -> Result<Step, AcquireError> {
        let left = timeout.minus(waited);
        match decision.retry_after() {
            Wait::None => Ok(Step::Done(decision.delay())),
            Wait::Never if matches!(decision.verdict, crate::Verdict::Invalid(_)) => Err(AcquireError::Invalid),
            Wait::Never => Err(AcquireError::Never),
            Wait::For(wait) if wait > left => Err(AcquireError::TimedOut { wait }),
            Wait::For(wait) => Ok(Step::Again(wait.plus(self.draw_jitter()).min(left))),
        }
    }

    fn draw_jitter(&self) -> Span {
        let drawn = (u128::from(random::unpredictable()) * (u128::from(self.jitter.nanos()) + 1)) >> 64;
        Span::from_nanos(drawn as u64)
    }
}

/// The next step after a decision.
enum Step {
    /// Units taken; a queue delays the caller by this span.
    Done(Span),
    /// Try again after this span.
    Again(Span),
}

impl Limiter<'_, tollgate_store::Memory> {
    /// [`acquire`](Limiter::acquire), blocking the thread.
    pub fn acquire_blocking(&self, n: u64) -> Result<Span, AcquireError> {
        self.try_acquire_blocking(n, Span::MAX)
    }

    /// [`try_acquire`](Limiter::try_acquire), blocking the thread.
    pub fn try_acquire_blocking(&self, n: u64, timeout: Span) -> Result<Span, AcquireError> {
        let mut waited = Span::ZERO;
        loop {
            if timeout < Span::MAX {
                self.in_time(&self.engine.decide_now(&self.request.cost(n).peek()), waited, timeout)?;
            }
            let decision = self.engine.decide_now(&self.request.cost(n));
            let (Step::Done(span) | Step::Again(span)) = self.step(&decision, waited, timeout)?;
            if !span.is_zero() {
                self.engine.sleep.block(span);
                waited = waited.plus(span);
            }
            if decision.is_allowed() {
                return Ok(waited);
            }
        }
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcquireError::Never => f.write_str("more than the limit ever allows"),
            AcquireError::TimedOut { wait } => write!(f, "not in time: {wait} longer"),
            AcquireError::Invalid => f.write_str("the request cannot be read"),
        }
    }
}

impl std::error::Error for AcquireError {}
