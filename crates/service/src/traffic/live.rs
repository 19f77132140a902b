//! What is sent to consoles while it happens.

use std::sync::Arc;

use tokio::sync::broadcast;
use tollgate_core::Time;

use super::found::FoundDecision;
use tollgate_analytics::TrafficCounts;

/// Events that wait for a slow reader; it misses the older ones.
const EVENTS_MAX: usize = 512;

/// A refusal that was kept.
pub type LiveDecision = Arc<FoundDecision>;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum LiveEvent {
    /// A second is over.
    Tick(Arc<LiveTick>),
    /// A rule refused, or would have. In a flood not all are sent.
    Refused(LiveDecision),
}

/// The counts of one second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveTick {
    /// The start of the second.
    pub at: Time,
    /// By namespace, without those in which nothing happened and no client is limited.
    pub namespaces: Vec<NamespaceTick>,
}

/// The counts of one second in one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceTick {
    /// The namespace.
    pub namespace: String,
    /// What was counted.
    pub counts: TrafficCounts,
    /// Clients that are limited now.
    pub limited_now: usize,
}

/// Sends events to all that listen. A slow reader misses events and delays nothing.
#[derive(Debug)]
pub(super) struct LiveSender(broadcast::Sender<LiveEvent>);

/// Receives events.
#[derive(Debug)]
pub struct LiveEvents(broadcast::Receiver<LiveEvent>);

impl LiveSender {
    pub(super) fn new() -> LiveSender {
        LiveSender(broadcast::channel(EVENTS_MAX).0)
    }

    pub(super) fn has_listeners(&self) -> bool {
        self.0.receiver_count() > 0
    }

    pub(super) fn send(&self, event: LiveEvent) {
        let _ = self.0.send(event); // without listeners it is dropped
    }

    pub(super) fn listen(&self) -> LiveEvents {
        LiveEvents(self.0.subscribe())
    }
}

impl LiveEvents {
    /// The next event; `None` once the server ends. Events that were missed are skipped.
    pub async fn next(&mut self) -> Option<LiveEvent> {
        loop {
            match self.0.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
