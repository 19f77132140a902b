//! Runs many futures at once and returns their outputs in order.
//!
//! Each future is polled only after its own waker fired: a thousand futures cost a thousand polls, not a million.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

/// Waits for all futures; at most `width` run at the same time.
pub async fn join<F: Future>(futures: impl Iterator<Item = F>, width: usize) -> Vec<F::Output> {
    let mut waiting = futures.fuse();
    let mut answers: Vec<Option<F::Output>> = Vec::new();
    let mut running: Vec<RunningFuture<F>> = Vec::new();
    let task = Arc::new(Mutex::new(Waker::noop().clone()));
    poll_fn(|cx| {
        task.lock().clone_from(cx.waker());
        loop {
            while running.len() < width.max(1)
                && let Some(future) = waiting.next()
            {
                running.push(RunningFuture::new(future, answers.len(), &task));
                answers.push(None);
            }
            let before = running.len();
            running.retain_mut(|one| match one.poll_if_woken() {
                Poll::Pending => true,
                Poll::Ready(answer) => {
                    if let Some(slot) = answers.get_mut(one.index) {
                        *slot = Some(answer);
                    }
                    false
                }
            });
            if running.is_empty() && before == 0 {
                return Poll::Ready(());
            }
            if running.len() == before {
                return Poll::Pending; // nothing ended, so nothing new may begin
            }
        }
    })
    .await;
    answers.into_iter().flatten().collect()
}

struct RunningFuture<F> {
    future: Pin<Box<F>>,
    index: usize,
    woken: Arc<FutureWaker>,
    waker: Waker,
}

/// Remembers that its future was woken, and wakes the task that waits for all.
struct FutureWaker {
    is_woken: AtomicBool,
    task: Arc<Mutex<Waker>>,
}

impl Wake for FutureWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            let task = self.task.lock().clone();
            task.wake();
        }
    }
}

impl<F: Future> RunningFuture<F> {
    fn new(future: F, index: usize, task: &Arc<Mutex<Waker>>) -> RunningFuture<F> {
        let woken = Arc::new(FutureWaker { is_woken: AtomicBool::new(true), task: task.clone() });
        RunningFuture { future: Box::pin(future), index, waker: Waker::from(woken.clone()), woken }
    }

    fn poll_if_woken(&mut self) -> Poll<F::Output> {
        match self.woken.is_woken.swap(false, Ordering::AcqRel) {
            true => self.future.as_mut().poll(&mut Context::from_waker(&self.waker)),
            false => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Returns its number after some turns of the others, and records how many ran at once.
    async fn slow(number: u64, under_way: &AtomicUsize, most: &AtomicUsize) -> u64 {
        most.fetch_max(under_way.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        for _ in 0..=50 - number % 50 {
            tokio::task::yield_now().await;
        }
        under_way.fetch_sub(1, Ordering::Relaxed);
        number
    }

    #[tokio::test]
    async fn all_run_at_once_and_answer_in_order() {
        for (width, expected) in [(1000, 200), (7, 7), (0, 1)] {
            let (under_way, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let answers = join((0..200).map(|number| slow(number, &under_way, &most)), width).await;
            assert_eq!(answers, (0..200).collect::<Vec<u64>>());
            assert_eq!(most.load(Ordering::Relaxed), expected);
        }
        assert_eq!(join(std::iter::empty::<std::future::Ready<()>>(), 5).await, []);
    }

    #[tokio::test]
    async fn a_future_is_polled_only_when_its_own_waker_fired() {
        let polls = AtomicUsize::new(0);
        let notify: Vec<tokio::sync::Notify> = (0..100).map(|_| tokio::sync::Notify::new()).collect();
        let waits = notify.iter().map(|notify| {
            let mut wait = Box::pin(notify.notified());
            let polls = &polls;
            poll_fn(move |cx| {
                polls.fetch_add(1, Ordering::Relaxed);
                wait.as_mut().poll(cx)
            })
        });
        let all = join(waits, 100);
        let wake = async {
            for notify in &notify {
                tokio::task::yield_now().await;
                notify.notify_one();
            }
        };
        tokio::join!(all, wake);
        assert_eq!(polls.load(Ordering::Relaxed), 200);
    }
}
