//! Tests of pending calls and of their queue.

use std::sync::Arc;

use tollgate_core::Time;
use tollgate_store::StoreErrorKind;

use super::*;
use crate::client::failure::error;

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

fn number_call() -> Arc<PendingCall<u8, u8>> {
    PendingCall::new(7, 0, SendMode::Joined, Time::ZERO)
}

#[test]
fn an_unclaimed_call_was_not_sent() {
    let call = number_call();
    assert!(matches!(call.give_up(), GaveUp::Unsent));
    assert!(call.is_over());
    assert_eq!(call.claim(), None);
}

#[test]
fn a_claimed_call_cannot_be_recalled() {
    let call = number_call();
    assert_eq!(call.claim(), Some(7));
    assert_eq!(call.claim(), None, "only once");
    assert!(matches!(call.give_up(), GaveUp::Sent));
    call.answer(Ok(1));
    assert!(call.is_over(), "too late");
}

#[test]
fn an_answer_that_came_just_before_counts() {
    let call = number_call();
    call.claim();
    call.answer(Ok(1));
    call.answer(Ok(2));
    assert!(matches!(call.give_up(), GaveUp::Answered(Ok(1))));
}

#[tokio::test]
async fn a_caller_wakes_when_it_is_answered() {
    let call = number_call();
    let waiter = WithdrawOnDrop(call.clone());
    let waiting = tokio::spawn(async move { waiter.0.answered().await });
    tokio::task::yield_now().await;
    call.claim();
    call.answer(Ok(9));
    assert!(matches!(waiting.await.unwrap(), Ok(9)));
}

#[tokio::test]
async fn a_cancelled_caller_withdraws_its_call() {
    let call = number_call();
    let waiter = WithdrawOnDrop(call.clone());
    let waiting = tokio::spawn(async move { waiter.0.answered().await });
    tokio::task::yield_now().await;
    waiting.abort();
    let _ = waiting.await;
    assert_eq!(call.claim(), None);
}
