//! The queue in front of the connections of a primary: bounded, first in, first out, without timers.
//!
//! An idle driver leaves its waker here; a push takes the waker and wakes it. Calls that arrive while all drivers are
//! busy are taken together by the first driver that becomes idle.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use parking_lot::Mutex;
use tollgate_store::StoreError;

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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tollgate_core::Time;
    use tollgate_store::StoreErrorKind;

    use super::*;
    use crate::client::failure::error;
    use crate::client::pending::{GaveUp, PendingCall, Retry, SendMode};

    type Work = Arc<PendingCall<(), ()>>;

    impl Queued for Work {
        fn is_over(&self) -> bool {
            PendingCall::is_over(self)
        }

        fn fail(self, error: &StoreError) {
            self.answer(Err(Retry::Failed(error.clone())));
        }
    }

    fn call() -> Work {
        PendingCall::new((), 0, SendMode::Joined, Time::ZERO)
    }

    #[test]
    fn the_queue_is_bounded_and_withdrawn_calls_do_not_count() {
        let (queue, calls) = (CallQueue::new(2), [call(), call(), call(), call()]);
        let push = |place: usize| queue.push(calls[place].clone());
        assert_eq!((push(0), push(1), push(2)), (Ok(()), Ok(()), Err(QueueError::Saturated)));
        assert!(matches!(calls[0].give_up(), GaveUp::Unsent));
        assert_eq!((push(2), push(3)), (Ok(()), Err(QueueError::Saturated)));
        assert_eq!(queue.len(), 2);
    }

    #[tokio::test]
    async fn waiting_calls_fail_when_the_primary_retires() {
        let (queue, call) = (CallQueue::new(2), call());
        queue.push(call.clone()).unwrap();
        queue.retire(&error(StoreErrorKind::Unavailable, "gone"));
        assert!(matches!(call.answered().await, Err(Retry::Failed(_))));
        assert_eq!(queue.push(call), Err(QueueError::Retired));
    }

    #[tokio::test]
    async fn a_driver_wakes_for_calls_and_when_all_are_woken() {
        let queue: Arc<CallQueue<Work>> = Arc::new(CallQueue::new(2));
        for wake in
            [(|queue: &CallQueue<Work>| queue.wake_all()) as fn(&CallQueue<Work>), |queue| queue.push(call()).unwrap()]
        {
            let same = queue.clone();
            let waiting = tokio::spawn(async move { same.wait_for_calls(0).await });
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
            wake(&queue);
            waiting.await.unwrap();
        }
    }
}
