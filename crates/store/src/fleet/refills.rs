//! Refills in the background: the request that finds a lease low is answered by it, and another task asks the store.
//!
//! [`Fleet`] starts no task, so the program that runs it lends one to [`Fleet::run_refills`]. Without that task the
//! request asks the store itself and waits for the answer, although its lease has paid for it already.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use tollgate_core::{Charge, Span};

use super::Fleet;
use super::lease::StoreAnswer;
use crate::sync::Mutex;
use crate::{Outcomes, Store};

/// Calls of the store under way at a time.
const CALLS_MAX: usize = 64;

/// Refills that wait for the task. Bounded by the number of leases: each has at most one refill under way.
#[derive(Debug, Default)]
pub(super) struct RefillQueue(Mutex<QueueState>);

#[derive(Debug, Default)]
struct QueueState {
    waiting: VecDeque<Refill>,
    /// Wakes the task.
    waker: Option<Waker>,
    /// A task runs: without one, requests ask the store themselves.
    is_running: bool,
    /// Refills that the task has begun and not finished.
    under_way: usize,
    /// Wakes [`RefillQueue::idle`] once there are none.
    idle_waker: Option<Waker>,
}

/// Units to ask for: the charge of the request, with the batch as its cost.
#[derive(Debug)]
pub(super) struct Refill {
    pub(super) charge: Charge,
    pub(super) within: Span,
}

impl RefillQueue {
    /// Hands refills over to the task; false if none runs.
    pub(super) fn push(&self, refills: impl Iterator<Item = Refill>) -> bool {
        let waker = {
            let mut state = self.0.lock();
            if !state.is_running {
                return false;
            }
            state.waiting.extend(refills);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// At most `most` refills; if there are none, `waker` is woken by the next.
    fn pop(&self, most: usize, waker: &Waker) -> Vec<Refill> {
        let mut state = self.0.lock();
        let most = most.min(state.waiting.len());
        let next: Vec<Refill> = state.waiting.drain(..most).collect();
        if next.is_empty() {
            state.waker = Some(waker.clone());
        }
        state.under_way += next.len();
        next
    }

    /// The task has finished a refill.
    fn finished(&self) {
        let waker = {
            let mut state = self.0.lock();
            state.under_way = state.under_way.saturating_sub(1);
            if state.under_way == 0 { state.idle_waker.take() } else { None }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits until no refill is under way.
    pub(super) async fn idle(&self) {
        poll_fn(|context| {
            let mut state = self.0.lock();
            if state.under_way == 0 {
                return Poll::Ready(());
            }
            state.idle_waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    pub(super) fn clear(&self) {
        self.0.lock().waiting.clear();
    }
}

impl<S: Store> Fleet<S> {
    /// Refills leases as they run low, until it is dropped. One task per node runs it, besides the one that calls
    /// [`upkeep`](Fleet::upkeep), and keeps it until [`close`](Fleet::close) has returned.
    pub async fn run_refills(&self) -> Infallible {
        let _running = RunningRefills::start(self);
        let mut calls = Vec::new();
        poll_fn(|context| {
            loop {
                let next = self.refills.pop(CALLS_MAX - calls.len(), context.waker());
                let started = next.len();
                calls.extend(next.into_iter().map(|refill| Box::pin(self.refill(refill))));
                let under_way = calls.len();
                calls.retain_mut(|call| {
                    let is_pending = call.as_mut().poll(context).is_pending();
                    if !is_pending {
                        self.refills.finished();
                    }
                    is_pending
                });
                if started == 0 && calls.len() == under_way {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// Asks the store for one batch and puts it into the lease.
    async fn refill(&self, refill: Refill) {
        let Refill { charge, within } = refill;
        if !self.leases.is_refilling(&charge) {
            return; // forgotten, or under another limit by now
        }
        let mut call = RefillCall { fleet: self, charge, failed: false, is_done: false };
        let mut outcomes = Outcomes::new();
        match (self.ask(std::slice::from_ref(&charge), within, &mut outcomes).await, outcomes.first()) {
            (Ok((_, seen)), Some(outcome)) => {
                let nodes = self.nodes_or_configured();
                let answer = StoreAnswer { outcome, seen, asked: charge.ask.cost(), used: 0, nodes };
                self.leases.settle_refill(&charge, &answer);
                call.is_done = true;
            }
            _ => call.failed = true,
        }
        drop(call);
        if self.leases.is_closed(charge.bucket) {
            self.return_lease_units(true).await;
        }
    }
}

/// A task runs as long as this exists. What it leaves behind is for requests to ask again.
struct RunningRefills<'a, S: Store>(&'a Fleet<S>);

impl<'a, S: Store> RunningRefills<'a, S> {
    fn start(fleet: &'a Fleet<S>) -> RunningRefills<'a, S> {
        fleet.refills.0.lock().is_running = true;
        RunningRefills(fleet)
    }
}

impl<S: Store> Drop for RunningRefills<'_, S> {
    fn drop(&mut self) {
        let QueueState { waiting, idle_waker, .. } = std::mem::take(&mut *self.0.refills.0.lock());
        if let Some(waker) = idle_waker {
            waker.wake();
        }
        for Refill { charge, .. } in waiting {
            self.0.leases.abandon_refill(charge.bucket, self.0.clock.now(), false);
        }
    }
}

/// One call under way. Dropped without an answer, it lets requests ask again.
struct RefillCall<'a, S: Store> {
    fleet: &'a Fleet<S>,
    charge: Charge,
    failed: bool,
    is_done: bool,
}

impl<S: Store> Drop for RefillCall<'_, S> {
    fn drop(&mut self) {
        if !self.is_done {
            self.fleet.leases.abandon_refill(self.charge.bucket, self.fleet.clock.now(), self.failed);
        }
    }
}
