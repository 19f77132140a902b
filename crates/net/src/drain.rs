//! Graceful shutdown in two steps: announced (health checks fail, so that load balancers look elsewhere, and requests
//! are still served), then begun (no new connections; accepted requests are answered).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// How long an idle connection may still send a request after the drain began: closing it at once would cut off a
/// request that is already on its way.
pub const IDLE_GRACE: Duration = Duration::from_secs(1);

/// The shutdown signal, and the connections that it waits for. Clones are the same drain.
#[derive(Clone, Debug, Default)]
pub struct Drain(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    announced: CancellationToken,
    begun: AtomicBool,
    token: CancellationToken,
    connections: TaskTracker,
}

impl Drain {
    /// Announces the shutdown: health checks fail from now on; requests are still served.
    pub fn announce(&self) {
        self.0.announced.cancel();
    }

    /// True once it was announced.
    pub fn is_announced(&self) -> bool {
        self.0.announced.is_cancelled()
    }

    /// Ready when it is announced.
    pub fn announced(&self) -> WaitForCancellationFuture<'_> {
        self.0.announced.cancelled()
    }

    /// Begins the shutdown; repeated calls change nothing.
    pub fn begin(&self) {
        self.announce();
        self.0.begun.store(true, Ordering::Release);
        self.0.token.cancel();
        self.0.connections.close();
    }

    /// True once it has begun. Cheap: read for every response.
    pub fn has_begun(&self) -> bool {
        self.0.begun.load(Ordering::Acquire)
    }

    /// Ready when it begins.
    pub fn begun(&self) -> WaitForCancellationFuture<'_> {
        self.0.token.cancelled()
    }

    /// The same, for a future that outlives the borrow.
    pub fn begun_owned(&self) -> WaitForCancellationFutureOwned {
        self.0.token.clone().cancelled_owned()
    }

    /// The shutdown waits until the token is dropped.
    pub(crate) fn track(&self) -> TaskTrackerToken {
        self.0.connections.token()
    }

    /// Spawns a connection that the shutdown waits for.
    pub fn spawn(&self, connection: impl Future<Output = ()> + Send + 'static) {
        self.0.connections.spawn(connection);
    }

    /// Waits until the last connection has closed, at most `limit`; returns how many are still open.
    pub async fn ended(&self, limit: Duration) -> usize {
        let _ = timeout(limit, self.0.connections.wait()).await;
        self.0.connections.len()
    }
}
