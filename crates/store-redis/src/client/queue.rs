//! Where work waits for a connection: bounded, first come first served, and without a timer.
//!
//! A driver that has nothing to do leaves its waker; whoever brings work takes it and wakes it. Work that arrives while
//! all drivers are busy waits for the first one that returns, and is taken together.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use parking_lot::Mutex;
use tollgate_store::StoreError;

/// Work that can wait in the queue.
pub(crate) trait Queued: fmt::Debug {
    /// True if its caller does not wait any more.
    fn is_over(&self) -> bool;
    /// Tells its caller that it failed and was not sent.
    fn fail(self, error: &StoreError);
}

/// Why work was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueError {
    /// Too much is waiting.
    Saturated,
    /// Nobody will come for it any more.
    Retired,
}

/// The work that waits.
#[derive(Debug)]
pub(crate) struct CallQueue<C> {
    max: usize,
    inside: Mutex<Inside<C>>,
}

#[derive(Debug)]
struct Inside<C> {
    jobs: VecDeque<C>,
    /// Drivers with nothing to do, by their numbers.
    idle: Vec<(usize, Waker)>,
    /// Counts calls for all drivers to look up, whatever they wait for.
    calls: u64,
    retired: bool,
}

impl<C: Queued> CallQueue<C> {
    pub(crate) fn new(max: usize) -> CallQueue<C> {
        let inside = Inside { jobs: VecDeque::new(), idle: Vec::new(), calls: 0, retired: false };
        CallQueue { max: max.max(1), inside: Mutex::new(inside) }
    }

    /// Adds a job and wakes a driver that has nothing to do.
    pub(crate) fn push(&self, job: C) -> Result<(), QueueError> {
        let mut inside = self.inside.lock();
        if inside.retired {
            return Err(QueueError::Retired);
        }
        if inside.jobs.len() >= self.max {
            // Those who have gone away wait for nothing: they have no claim on a place.
            inside.jobs.retain(|job| !job.is_over());
            if inside.jobs.len() >= self.max {
                return Err(QueueError::Saturated);
            }
        }
        inside.jobs.push_back(job);
        let waker = inside.idle.pop();
        drop(inside);
        if let Some((_, waker)) = waker {
            waker.wake();
        }
        Ok(())
    }

    /// How many jobs wait.
    pub(crate) fn len(&self) -> usize {
        self.inside.lock().jobs.len()
    }

    /// Waits until there is work for this driver, or until all drivers are called.
    pub(crate) async fn work_or_call(&self, driver: usize) {
        let mut calls = None;
        poll_fn(|cx| {
            let mut inside = self.inside.lock();
            inside.idle.retain(|(number, _)| *number != driver);
            let first = *calls.get_or_insert(inside.calls);
            if !inside.jobs.is_empty() || inside.calls != first || inside.retired {
                return Poll::Ready(());
            }
            inside.idle.push((driver, cx.waker().clone()));
            Poll::Pending
        })
        .await
    }

    /// Takes what waits, oldest first and at most `max`; the driver is busy from here on.
    pub(crate) fn take(&self, driver: usize, max: usize, into: &mut Vec<C>) {
        let mut inside = self.inside.lock();
        inside.idle.retain(|(number, _)| *number != driver);
        let count = inside.jobs.len().min(max);
        into.extend(inside.jobs.drain(..count));
    }

    /// Calls all drivers.
    pub(crate) fn call(&self) {
        let mut inside = self.inside.lock();
        inside.calls += 1;
        let idle = std::mem::take(&mut inside.idle);
        drop(inside);
        idle.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Fails everything that waits: nothing of it was sent.
    pub(crate) fn fail_all(&self, error: &StoreError) {
        let jobs = std::mem::take(&mut self.inside.lock().jobs);
        jobs.into_iter().for_each(|job| job.fail(error));
    }

    /// Accepts nothing any more.
    pub(crate) fn retire(&self, error: &StoreError) {
        self.inside.lock().retired = true;
        self.fail_all(error);
        self.call();
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
    fn waiting_is_bounded_and_those_who_left_do_not_count() {
        let (queue, tickets) = (CallQueue::new(2), [call(), call(), call(), call()]);
        let push = |place: usize| queue.push(tickets[place].clone());
        assert_eq!((push(0), push(1), push(2)), (Ok(()), Ok(()), Err(QueueError::Saturated)));
        assert!(matches!(tickets[0].give_up(), GaveUp::Unsent));
        assert_eq!((push(2), push(3)), (Ok(()), Err(QueueError::Saturated)));
        assert_eq!(queue.len(), 2);
    }

    #[tokio::test]
    async fn what_waits_is_failed_when_the_primary_retires() {
        let (queue, call) = (CallQueue::new(2), call());
        queue.push(call.clone()).unwrap();
        queue.retire(&error(StoreErrorKind::Unavailable, "gone"));
        assert!(matches!(call.answered().await, Err(Retry::Failed(_))));
        assert_eq!(queue.push(call), Err(QueueError::Retired));
    }

    #[tokio::test]
    async fn a_driver_wakes_for_work_and_for_calls() {
        let queue: Arc<CallQueue<Work>> = Arc::new(CallQueue::new(2));
        for wake in
            [(|queue: &CallQueue<Work>| queue.call()) as fn(&CallQueue<Work>), |queue| queue.push(call()).unwrap()]
        {
            let same = queue.clone();
            let waiting = tokio::spawn(async move { same.work_or_call(0).await });
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
            wake(&queue);
            waiting.await.unwrap();
        }
    }
}
