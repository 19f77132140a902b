//! Waiting for room: the classic blocking limiter, over the same engine and the same rules.

use std::fmt;

use tollgate_core::{Request, Span, Wait};
use tollgate_store::Store;

use crate::{Decision, Engine, random};

/// Acquires units for one kind of request, waiting for them if need be.
#[derive(Debug)]
pub struct Limiter<'a, S> {
    engine: &'a Engine<S>,
    request: Request<'a>,
    jitter: Span,
}

/// Why units were not acquired. Nothing is charged then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquireError {
    /// They can never be had: more than the capacity, or a limit of zero.
    Never,
    /// They cannot be had in time.
    TimedOut {
        /// How much longer it would have taken, as far as is known.
        wait: Span,
    },
    /// The request cannot be read.
    Invalid,
}

impl<S: Store> Engine<S> {
    /// Acquires units for `request`, waiting for them where needed.
    pub fn limiter<'a>(&'a self, request: Request<'a>) -> Limiter<'a, S> {
        Limiter { engine: self, request, jitter: Span::ZERO }
    }
}

impl<'a, S: Store> Limiter<'a, S> {
    /// Adds up to `jitter` to every wait, so that many waiters do not return at the same moment. It only ever adds.
    pub fn with_jitter(self, jitter: Span) -> Limiter<'a, S> {
        Limiter { jitter, ..self }
    }

    /// Waits until `n` units are to be had, takes them, and answers how long that took.
    pub async fn acquire(&self, n: u64) -> Result<Span, AcquireError> {
        self.try_acquire(n, Span::MAX).await
    }

    /// As [`acquire`](Limiter::acquire), but gives up at once when it is clear that `timeout` will not be enough.
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

    /// A place in a queue is charged for when it is taken: so whether its delay fits is asked before.
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

/// What to do after a decision.
enum Step {
    /// Units taken; a queue asks to wait this long before proceeding.
    Done(Span),
    /// Ask again after this long.
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
