//! A deadline that moves with every request and costs nothing while it does.
//!
//! Registering a timer per request would be a good part of the request. So one timer lives as long as the connection:
//! moving the deadline later only notes it, and the timer, when it rings, looks whether it rang too early.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};

/// One timer, set again and again.
#[derive(Debug)]
pub(crate) struct Deadline {
    timer: Pin<Box<Sleep>>,
    /// When the timer rings: never after `at`.
    rings: Instant,
    at: Instant,
}

impl Deadline {
    /// A deadline at `at`.
    pub(crate) fn new(at: Instant) -> Deadline {
        Deadline { timer: Box::pin(sleep_until(at)), rings: at, at }
    }

    /// Moves it, either way.
    pub(crate) fn set(&mut self, at: Instant) {
        self.at = at;
        if at < self.rings {
            self.ring_at(at);
        }
    }

    /// Ready once it has passed.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.at <= self.rings {
                return Poll::Ready(());
            }
            self.ring_at(self.at);
        }
        Poll::Pending
    }

    fn ring_at(&mut self, at: Instant) {
        self.timer.as_mut().reset(at);
        self.rings = at;
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn passes_when_last_told_to_later_or_sooner() {
        let start = Instant::now();
        let mut deadline = Deadline::new(start + 5 * SECOND);
        deadline.set(start + 60 * SECOND);
        deadline.set(start + 9 * SECOND);
        poll_fn(|cx| deadline.poll(cx)).await;
        assert_eq!(start.elapsed().as_secs(), 9);

        deadline.set(start + 100 * SECOND);
        deadline.set(start + 11 * SECOND);
        poll_fn(|cx| deadline.poll(cx)).await;
        assert_eq!(start.elapsed().as_secs(), 11);
    }
}
