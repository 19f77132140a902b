//! The end of a server, begun once: what was accepted is answered, nothing new is. Before that it can be announced, so
//! that balancers send their calls elsewhere while they are still answered here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// How long a connection that is merely open may still send a request after the drain began: closing it at once would
/// cut off a request that is already on its way.
pub(crate) const LAST_CALL: Duration = Duration::from_secs(1);

/// Tells everyone that the end has begun, and knows who is still there. Clones are the same drain.
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
    /// Says that it will begin: whoever asks whether calls may be sent here is told no. Everybody is served on.
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

    /// Begins it; a second time changes nothing.
    pub fn begin(&self) {
        self.announce();
        self.0.begun.store(true, Ordering::Release);
        self.0.token.cancel();
        self.0.connections.close();
    }

    /// True once it has begun. Cheap: asked for every answer.
    pub fn has_begun(&self) -> bool {
        self.0.begun.load(Ordering::Acquire)
    }

    /// Ready when it begins.
    pub fn begun(&self) -> WaitForCancellationFuture<'_> {
        self.0.token.cancelled()
    }

    /// The end waits for whoever holds this.
    pub(crate) fn stay(&self) -> TaskTrackerToken {
        self.0.connections.token()
    }

    /// Runs a connection that the end waits for.
    pub fn host(&self, connection: impl Future<Output = ()> + Send + 'static) {
        self.0.connections.spawn(connection);
    }

    /// Waits for the last connection, at most `patience`; answers how many were left.
    pub async fn ended(&self, patience: Duration) -> usize {
        let _ = timeout(patience, self.0.connections.wait()).await;
        self.0.connections.len()
    }
}
