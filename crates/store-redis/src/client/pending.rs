//! A call between its caller and the driver: one allocation for the request, its state and its result.
//!
//! Its state decides what a timeout means. A call that the driver has not claimed is withdrawn and was never sent; a
//! claimed call may have been sent and cannot be recalled.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tollgate_core::Time;
use tollgate_store::StoreError;

use super::failure::Redirect;

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
mod tests {
    use super::*;

    fn call() -> Arc<PendingCall<u8, u8>> {
        PendingCall::new(7, 0, SendMode::Joined, Time::ZERO)
    }

    #[test]
    fn an_unclaimed_call_was_not_sent() {
        let call = call();
        assert!(matches!(call.give_up(), GaveUp::Unsent));
        assert!(call.is_over());
        assert_eq!(call.claim(), None);
    }

    #[test]
    fn a_claimed_call_cannot_be_recalled() {
        let call = call();
        assert_eq!(call.claim(), Some(7));
        assert_eq!(call.claim(), None, "only once");
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
    async fn a_cancelled_caller_withdraws_its_call() {
        let call = call();
        let waiter = WithdrawOnDrop(call.clone());
        let waiting = tokio::spawn(async move { waiter.0.answered().await });
        tokio::task::yield_now().await;
        waiting.abort();
        let _ = waiting.await;
        assert_eq!(call.claim(), None);
    }
}
