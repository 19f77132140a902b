//! Whether the requests of an HTTP/2 connection make progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The open requests of a connection, and when one of them last made progress.
pub(crate) struct ConnectionActivity {
    pub(crate) start: Instant,
    open: AtomicUsize,
    /// Of the open ones, those whose response has no more bytes yet: the client cannot be blamed for them.
    waiting: AtomicUsize,
    /// Last progress, in milliseconds after `start`.
    last: AtomicU64,
}

impl ConnectionActivity {
    pub(crate) fn new() -> ConnectionActivity {
        ConnectionActivity {
            start: Instant::now(),
            open: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            last: AtomicU64::new(0),
        }
    }

    /// True while requests are open.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// True while a request is open that the client could move.
    pub(crate) fn is_active(&self) -> bool {
        self.open.load(Ordering::Relaxed) > self.waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn last(&self) -> Instant {
        self.start + Duration::from_millis(self.last.load(Ordering::Relaxed))
    }

    fn touch(&self) {
        let elapsed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.fetch_max(elapsed, Ordering::Relaxed);
    }
}

/// Counts a stream as active until hyper has taken the last byte of its response.
pub(crate) struct ActiveStream {
    activity: Arc<ConnectionActivity>,
    is_waiting: bool,
}

impl ActiveStream {
    pub(crate) fn enter(activity: &Arc<ConnectionActivity>) -> ActiveStream {
        activity.open.fetch_add(1, Ordering::Relaxed);
        activity.waiting.fetch_add(1, Ordering::Relaxed); // for the response: handlers and bodies have deadlines of their own
        activity.touch();
        ActiveStream { activity: activity.clone(), is_waiting: true }
    }

    /// hyper asked for more of the response: the client has room. `is_waiting` if there is nothing more yet.
    pub(crate) fn set_waiting(&mut self, is_waiting: bool) {
        self.activity.touch();
        match (self.is_waiting, is_waiting) {
            (false, true) => _ = self.activity.waiting.fetch_add(1, Ordering::Relaxed),
            (true, false) => _ = self.activity.waiting.fetch_sub(1, Ordering::Relaxed),
            _ => {}
        }
        self.is_waiting = is_waiting;
    }
}

impl Drop for ActiveStream {
    fn drop(&mut self) {
        self.set_waiting(false);
        self.activity.open.fetch_sub(1, Ordering::Relaxed);
    }
}
