//! What a caller waits by, and what the driver answers to: one allocation for the question, its place and its answer.
//!
//! It settles who was first when time runs out: a ticket that nobody has claimed is withdrawn and was never sent; one
//! that was claimed may have been, and nobody can call it back.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tollgate_core::Time;
use tollgate_store::StoreError;

use super::failure::Redirect;

/// The answer, or why there is none.
pub(crate) type CallResult<W, A> = Result<A, Retry<W>>;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Retry<W> {
    /// It is over.
    Failed(StoreError),
    /// It came to the store too late and charged nothing; the work is given back.
    Expired(W),
    /// The slot was just moving.
    TryAgain(W),
    /// Something in the call was no bucket of ours; whose, is found out by asking each alone.
    Suspect(W),
    /// Somebody else may do it.
    Redirected(Redirect, W),
}

/// How work is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendMode {
    /// Together with whatever else waits.
    Joined,
    /// In a call of its own.
    Alone,
    /// In a call of its own, with `ASKING` before it.
    Asking,
}

/// Work that waits for the driver, and a caller who waits for its answer.
#[derive(Debug)]
pub(crate) struct PendingCall<W, A> {
    /// The slot of its keys.
    pub(crate) slot: u16,
    /// How it is sent.
    pub(crate) mode: SendMode,
    /// When the caller goes away, by our clock.
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

/// What had become of a ticket when its caller gave up.
#[derive(Debug)]
pub(crate) enum GaveUp<W, A> {
    /// Nobody had claimed it: it was never sent.
    Unsent,
    /// It may have been sent.
    Sent,
    /// The answer was just there.
    Answered(CallResult<W, A>),
}

impl<W, A> PendingCall<W, A> {
    pub(crate) fn new(work: W, slot: u16, mode: SendMode, deadline: Time) -> Arc<PendingCall<W, A>> {
        Arc::new(PendingCall { slot, mode, deadline, state: Mutex::new(State::Waiting(work, None)) })
    }

    /// Takes the work, to send it; `None` if the caller has gone.
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

    /// True if it was claimed and has no answer yet.
    pub(crate) fn is_sent(&self) -> bool {
        matches!(*self.state.lock(), State::Sent(_))
    }

    /// True if nobody waits any more.
    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.state.lock(), State::Over)
    }

    /// Answers; whoever still waits wakes up.
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

    /// Waits for the answer.
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

    /// Waits no longer.
    pub(crate) fn give_up(&self) -> GaveUp<W, A> {
        match std::mem::replace(&mut *self.state.lock(), State::Over) {
            State::Waiting(..) => GaveUp::Unsent,
            State::Sent(_) | State::Over => GaveUp::Sent,
            State::Answered(reply) => GaveUp::Answered(reply),
        }
    }
}

/// Gives the ticket up when its caller goes away for whatever reason.
pub(crate) struct WithdrawOnDrop<W, A>(pub(crate) Arc<PendingCall<W, A>>);

impl<W, A> Drop for WithdrawOnDrop<W, A> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Arc<PendingCall<u8, u8>> {
        PendingCall::new(7, 0, SendMode::Joined, Time::ZERO)
    }

    #[test]
    fn what_was_not_claimed_was_not_sent() {
        let call = call();
        assert!(matches!(call.give_up(), GaveUp::Unsent));
        assert!(call.is_over());
        assert_eq!(call.claim(), None);
    }

    #[test]
    fn what_was_claimed_cannot_be_called_back() {
        let call = call();
        assert_eq!(call.claim(), Some(7));
        assert_eq!(call.claim(), None, "by nobody else");
        assert!(matches!(call.give_up(), GaveUp::Sent));
        call.answer(Ok(1));
        assert!(call.is_over(), "too late");
    }

    #[test]
    fn an_answer_that_came_just_before_counts() {
        let call = call();
        call.claim();
        call.answer(Ok(1));
        call.answer(Ok(2));
        assert!(matches!(call.give_up(), GaveUp::Answered(Ok(1))));
    }

    #[tokio::test]
    async fn a_caller_wakes_when_it_is_answered() {
        let call = call();
        let waiter = WithdrawOnDrop(call.clone());
        let waiting = tokio::spawn(async move { waiter.0.answered().await });
        tokio::task::yield_now().await;
        call.claim();
        call.answer(Ok(9));
        assert!(matches!(waiting.await.unwrap(), Ok(9)));
    }

    #[tokio::test]
    async fn a_caller_who_is_cancelled_withdraws() {
        let call = call();
        let waiter = WithdrawOnDrop(call.clone());
        let waiting = tokio::spawn(async move { waiter.0.answered().await });
        tokio::task::yield_now().await;
        waiting.abort();
        let _ = waiting.await;
        assert_eq!(call.claim(), None);
    }
}
