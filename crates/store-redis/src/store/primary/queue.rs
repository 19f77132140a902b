//! Where work waits for a connection: bounded, first come first served, and without a timer.
//!
//! A driver that has nothing to do leaves its waker; whoever brings work takes it and wakes it. Work that arrives while
//! all drivers are busy waits for the first one that returns, and is taken together.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;
use tollgate_core::Receipt;
use tollgate_resp::RespValue;
use tollgate_store::StoreError;

use crate::client::pending::{Setback, Ticket};
use crate::store::script::{Answer, Question};

/// A question and its answer.
pub(super) type Asked = Ticket<Question, Answer>;
/// Receipts, and how many of them gave something back.
pub(super) type Returned = Ticket<Vec<Receipt>, usize>;
/// Plain commands and their replies.
pub(super) type Commanded = Ticket<Commands, Vec<RespValue>>;

/// Commands as bytes, and how many replies they have.
#[derive(Debug)]
pub(super) struct Commands {
    pub(super) bytes: Vec<u8>,
    pub(super) replies: usize,
}

/// One piece of work.
#[derive(Debug)]
pub(super) enum Job {
    Ask(Arc<Asked>),
    GiveBack(Arc<Returned>),
    Command(Arc<Commanded>),
}

impl Job {
    fn is_over(&self) -> bool {
        match self {
            Job::Ask(ticket) => ticket.is_over(),
            Job::GiveBack(ticket) => ticket.is_over(),
            Job::Command(ticket) => ticket.is_over(),
        }
    }

    fn fail(self, error: &StoreError) {
        match self {
            Job::Ask(ticket) => ticket.answer(Err(Setback::Failed(error.clone()))),
            Job::GiveBack(ticket) => ticket.answer(Err(Setback::Failed(error.clone()))),
            Job::Command(ticket) => ticket.answer(Err(Setback::Failed(error.clone()))),
        }
    }
}

/// Why work was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// Too much is waiting.
    Saturated,
    /// Nobody will come for it any more.
    Retired,
}

/// The work that waits.
#[derive(Debug)]
pub(super) struct Queue {
    max: usize,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    jobs: VecDeque<Job>,
    /// Drivers with nothing to do, by their numbers.
    idle: Vec<(usize, Waker)>,
    /// Counts calls for all drivers to look up, whatever they wait for.
    calls: u64,
    retired: bool,
}

impl Queue {
    pub(super) fn new(max: usize) -> Queue {
        Queue { max: max.max(1), inside: Mutex::default() }
    }

    /// Adds a job and wakes a driver that has nothing to do.
    pub(super) fn push(&self, job: Job) -> Result<(), Full> {
        let mut inside = self.inside.lock();
        if inside.retired {
            return Err(Full::Retired);
        }
        if inside.jobs.len() >= self.max {
            // Those who have gone away wait for nothing: they have no claim on a place.
            inside.jobs.retain(|job| !job.is_over());
            if inside.jobs.len() >= self.max {
                return Err(Full::Saturated);
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
    pub(super) fn len(&self) -> usize {
        self.inside.lock().jobs.len()
    }

    /// Waits until there is work for this driver, or until all drivers are called.
    pub(super) async fn work_or_call(&self, driver: usize) {
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
    pub(super) fn take(&self, driver: usize, max: usize, into: &mut Vec<Job>) {
        let mut inside = self.inside.lock();
        inside.idle.retain(|(number, _)| *number != driver);
        let count = inside.jobs.len().min(max);
        into.extend(inside.jobs.drain(..count));
    }

    /// Calls all drivers.
    pub(super) fn call(&self) {
        let mut inside = self.inside.lock();
        inside.calls += 1;
        let idle = std::mem::take(&mut inside.idle);
        drop(inside);
        idle.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Fails everything that waits: nothing of it was sent.
    pub(super) fn fail_all(&self, error: &StoreError) {
        let jobs = std::mem::take(&mut self.inside.lock().jobs);
        jobs.into_iter().for_each(|job| job.fail(error));
    }

    /// Accepts nothing any more.
    pub(super) fn retire(&self, error: &StoreError) {
        self.inside.lock().retired = true;
        self.fail_all(error);
        self.call();
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::Time;
    use tollgate_store::StoreErrorKind;

    use super::*;
    use crate::client::failure::error;
    use crate::client::pending::{GaveUp, Manner};

    fn ticket() -> Arc<Commanded> {
        Ticket::new(Commands { bytes: Vec::new(), replies: 0 }, 0, Manner::Joined, Time::ZERO)
    }

    #[test]
    fn waiting_is_bounded_and_those_who_left_do_not_count() {
        let (queue, tickets) = (Queue::new(2), [ticket(), ticket(), ticket(), ticket()]);
        let push = |place: usize| queue.push(Job::Command(tickets[place].clone()));
        assert_eq!((push(0), push(1), push(2)), (Ok(()), Ok(()), Err(Full::Saturated)));
        assert!(matches!(tickets[0].give_up(), GaveUp::Unsent));
        assert_eq!((push(2), push(3)), (Ok(()), Err(Full::Saturated)));
        assert_eq!(queue.len(), 2);
    }

    #[tokio::test]
    async fn what_waits_is_failed_when_the_primary_retires() {
        let (queue, ticket) = (Queue::new(2), ticket());
        queue.push(Job::Command(ticket.clone())).unwrap();
        queue.retire(&error(StoreErrorKind::Unavailable, "gone"));
        assert!(matches!(ticket.answered().await, Err(Setback::Failed(_))));
        assert_eq!(queue.push(Job::Command(ticket)), Err(Full::Retired));
    }

    #[tokio::test]
    async fn a_driver_wakes_for_work_and_for_calls() {
        let queue = Arc::new(Queue::new(2));
        for wake in [(|queue: &Queue| queue.call()) as fn(&Queue), |queue| queue.push(Job::Command(ticket())).unwrap()]
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
