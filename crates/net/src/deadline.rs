//! A deadline that moves with every request at no cost.
//!
//! Registering a timer per request would cost a good part of the request. So one timer lives as long as the connection:
//! moving the deadline later only stores it, and the timer re-arms itself when it fires too early.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};

/// One timer for many deadlines.
#[derive(Debug)]
pub struct Deadline {
    timer: Pin<Box<Sleep>>,
    /// When the timer fires: never after `at`.
    fires: Instant,
    at: Instant,
}

impl Deadline {
    /// A deadline at `at`.
    pub fn new(at: Instant) -> Deadline {
        Deadline { timer: Box::pin(sleep_until(at)), fires: at, at }
    }

    /// Moves the deadline, earlier or later.
    pub fn set(&mut self, at: Instant) {
        self.at = at;
        if at < self.fires {
            self.fire_at(at);
        }
    }

    /// Ready once the deadline has passed.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.at <= self.fires {
                return Poll::Ready(());
            }
            self.fire_at(self.at);
        }
        Poll::Pending
    }

    fn fire_at(&mut self, at: Instant) {
        self.timer.as_mut().reset(at);
        self.fires = at;
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn passes_at_the_deadline_that_was_set_last() {
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
