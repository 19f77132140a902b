//! Calls between their callers and the connections of a primary: the queue, and the state of each call.
//!
//! The queue is bounded, first in, first out, without timers. An idle driver leaves its waker here; a push takes the
//! waker and wakes it. Calls that arrive while all drivers are busy are taken together by the first driver that becomes
//! idle.
//!
//! A call is one allocation for the request, its state and its result. Its state decides what a timeout means: a call
//! that the driver has not claimed is withdrawn and was never sent; a claimed call may have been sent and cannot be
//! recalled.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tollgate_core::Time;
use tollgate_store::StoreError;

use super::failure::Redirect;

/// A call that can wait in the queue.
pub(crate) trait Queued: fmt::Debug {
    /// True if its caller does not wait any more.
    fn is_over(&self) -> bool;
    /// Reports to its caller that it failed and was not sent.
    fn fail(self, error: &StoreError);
}

/// Why a call was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueError {
    /// The queue is full.
    Saturated,
    /// The primary is not used any more.
    Retired,
}

/// Waiting calls.
#[derive(Debug)]
pub(crate) struct CallQueue<C> {
    max: usize,
    inside: Mutex<Inside<C>>,
}

#[derive(Debug)]
struct Inside<C> {
    calls: VecDeque<C>,
    /// Idle drivers, by number.
    idle: Vec<(usize, Waker)>,
    /// Counts wake-ups of all drivers.
    wakeups: u64,
    retired: bool,
}

impl<C: Queued> CallQueue<C> {
    pub(crate) fn new(max: usize) -> CallQueue<C> {
        let inside = Inside { calls: VecDeque::new(), idle: Vec::new(), wakeups: 0, retired: false };
        CallQueue { max: max.max(1), inside: Mutex::new(inside) }
    }

    /// Adds a call and wakes an idle driver.
    pub(crate) fn push(&self, call: C) -> Result<(), QueueError> {
        let mut inside = self.inside.lock();
        if inside.retired {
            return Err(QueueError::Retired);
        }
        if inside.calls.len() >= self.max {
            // Calls whose callers have gone do not count.
            inside.calls.retain(|call| !call.is_over());
            if inside.calls.len() >= self.max {
                return Err(QueueError::Saturated);
            }
        }
        inside.calls.push_back(call);
        let waker = inside.idle.pop();
        drop(inside);
        if let Some((_, waker)) = waker {
            waker.wake();
        }
        Ok(())
    }

    /// Number of waiting calls.
    pub(crate) fn len(&self) -> usize {
        self.inside.lock().calls.len()
    }

    /// Waits until there is a call for this driver, or until all drivers are woken.
    pub(crate) async fn wait_for_calls(&self, driver: usize) {
        let mut wakeups = None;
        poll_fn(|cx| {
            let mut inside = self.inside.lock();
            inside.idle.retain(|(number, _)| *number != driver);
            let first = *wakeups.get_or_insert(inside.wakeups);
            if !inside.calls.is_empty() || inside.wakeups != first || inside.retired {
                return Poll::Ready(());
            }
            inside.idle.push((driver, cx.waker().clone()));
            Poll::Pending
        })
        .await
    }

    /// Takes at most `max` waiting calls, oldest first; the driver is busy from here on.
    pub(crate) fn take(&self, driver: usize, max: usize, into: &mut Vec<C>) {
        let mut inside = self.inside.lock();
        inside.idle.retain(|(number, _)| *number != driver);
        let count = inside.calls.len().min(max);
        into.extend(inside.calls.drain(..count));
    }

    /// Wakes all drivers.
    pub(crate) fn wake_all(&self) {
        let mut inside = self.inside.lock();
        inside.wakeups += 1;
        let idle = std::mem::take(&mut inside.idle);
        drop(inside);
        idle.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Fails all waiting calls: none of them was sent.
    pub(crate) fn fail_all(&self, error: &StoreError) {
        let calls = std::mem::take(&mut self.inside.lock().calls);
        calls.into_iter().for_each(|call| call.fail(error));
    }

    /// Accepts no more calls.
    pub(crate) fn retire(&self, error: &StoreError) {
        self.inside.lock().retired = true;
        self.fail_all(error);
        self.wake_all();
    }
}

/// The result of a call, or why there is none.
pub(crate) type CallResult<W, A> = Result<A, Retry<W>>;

/// Why a call has no result, and whether it may be sent again.
#[derive(Debug)]
pub(crate) enum Retry<W> {
    /// The call failed.
    Failed(StoreError),
    /// The call reached the store after its deadline and charged nothing; the work is returned.
    Expired(W),
    /// The slot is migrating.
    TryAgain(W),
    /// A batch contained a value that is not a bucket; each of its calls is sent again alone to find it.
    Suspect(W),
    /// Another server may execute it.
    Redirected(Redirect, W),
}

/// How a call is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendMode {
    /// Batched with other calls.
    Joined,
    /// In a batch of its own.
    Alone,
    /// In a batch of its own, preceded by `ASKING`.
    Asking,
}

/// A call that waits for the driver, and whose caller waits for the result.
#[derive(Debug)]
pub(crate) struct PendingCall<W, A> {
    /// The slot of its keys.
    pub(crate) slot: u16,
    /// How it is sent.
    pub(crate) mode: SendMode,
    /// When the caller stops waiting, by this node's clock.
    pub(crate) deadline: Time,
    state: Mutex<State<W, A>>,
}

#[derive(Debug)]
enum State<W, A> {
    Waiting(W, Option<Waker>),
    Sent(Option<Waker>),
    Answered(CallResult<W, A>),
    Over,
}

/// The state of a call when its caller gave up.
#[derive(Debug)]
pub(crate) enum GaveUp<W, A> {
    /// The driver had not claimed it: it was never sent.
    Unsent,
    /// It may have been sent.
    Sent,
    /// The result had just arrived.
    Answered(CallResult<W, A>),
}

impl<W, A> PendingCall<W, A> {
    pub(crate) fn new(work: W, slot: u16, mode: SendMode, deadline: Time) -> Arc<PendingCall<W, A>> {
        Arc::new(PendingCall { slot, mode, deadline, state: Mutex::new(State::Waiting(work, None)) })
    }

    /// Takes the work to send it; `None` if the caller has gone.
    pub(crate) fn claim(&self) -> Option<W> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, State::Over) {
            State::Waiting(work, waker) => {
                *state = State::Sent(waker);
                Some(work)
            }
            other => {
                *state = other;
                None
            }
        }
    }

    /// True if it was claimed and has no result yet.
    pub(crate) fn is_sent(&self) -> bool {
        matches!(*self.state.lock(), State::Sent(_))
    }

    /// True if the caller does not wait any more.
    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.state.lock(), State::Over)
    }

    /// Sets the result and wakes the caller.
    pub(crate) fn answer(&self, reply: CallResult<W, A>) {
        let mut state = self.state.lock();
        let waker = match &mut *state {
            State::Waiting(_, waker) | State::Sent(waker) => waker.take(),
            State::Answered(_) | State::Over => return,
        };
        *state = State::Answered(reply);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits for the result.
    pub(crate) async fn answered(&self) -> CallResult<W, A> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<CallResult<W, A>> {
        let mut state = self.state.lock();
        match &mut *state {
            State::Waiting(_, waker) | State::Sent(waker) => {
                match waker {
                    Some(waker) => waker.clone_from(cx.waker()),
                    None => *waker = Some(cx.waker().clone()),
                }
                Poll::Pending
            }
            State::Answered(_) => match std::mem::replace(&mut *state, State::Over) {
                State::Answered(reply) => Poll::Ready(reply),
                _ => Poll::Pending,
            },
            State::Over => Poll::Pending,
        }
    }

    /// Stops waiting.
    pub(crate) fn give_up(&self) -> GaveUp<W, A> {
        match std::mem::replace(&mut *self.state.lock(), State::Over) {
            State::Waiting(..) => GaveUp::Unsent,
            State::Sent(_) | State::Over => GaveUp::Sent,
            State::Answered(reply) => GaveUp::Answered(reply),
        }
    }
}

/// Gives the call up when its caller is dropped.
pub(crate) struct WithdrawOnDrop<W, A>(pub(crate) Arc<PendingCall<W, A>>);

impl<W, A> Drop for WithdrawOnDrop<W, A> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

#[cfg(test)]
mod tests;
