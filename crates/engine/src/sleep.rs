//! Waiting: in real time, or by moving a manual clock.

use std::pin::Pin;
use std::time::Duration;

use tollgate_core::{ManualClock, Span};

/// How a limiter waits. On a manual clock, waiting moves the time and returns at once.
pub trait Sleep: Send + Sync {
    /// Blocks the thread for `span`.
    fn block(&self, span: Span);

    /// Waits for `span` without blocking the thread.
    fn wait(&self, span: Span) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// Real time. [`wait`](Sleep::wait) needs a Tokio runtime with its timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealTime;

impl Sleep for RealTime {
    #[expect(clippy::disallowed_methods, reason = "the home of real waiting")]
    fn block(&self, span: Span) {
        std::thread::sleep(Duration::from(span));
    }

    fn wait(&self, span: Span) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(tokio::time::sleep(Duration::from(span)))
    }
}

impl Sleep for ManualClock {
    fn block(&self, span: Span) {
        self.advance(span);
    }

    fn wait(&self, span: Span) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.advance(span);
        Box::pin(std::future::ready(()))
    }
}
