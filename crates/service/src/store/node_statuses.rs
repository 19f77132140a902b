//! What the nodes of a fleet tell of themselves: every node publishes a text in the shared store, and reads those of the
//! others.

use parking_lot::Mutex;
use tollgate_core::{Clock, Span, Time};
use tollgate_store_redis::{NodeReport, RedisStore};

/// How often a node tells of itself.
const STATUS_INTERVAL: Span = Span::from_secs(3);

/// The statuses of all nodes, as this one read them last.
#[derive(Debug, Default)]
pub struct NodeStatuses(Mutex<KnownStatuses>);

#[derive(Debug, Default)]
struct KnownStatuses {
    /// The last text of this node.
    published: Option<String>,
    /// When the next one is due.
    next: Time,
    fleet: FleetStatuses,
}

/// The nodes of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetStatuses {
    /// When they were read from the store, by the wall clock; `None` before the first time.
    pub read_at: Option<Time>,
    /// The name of this node in the store, unlike that of any other.
    pub own: String,
    /// The last text of each other node. Its age is that at the time of reading.
    pub nodes: Vec<NodeReport>,
}

impl NodeStatuses {
    /// Publishes the text of this node and reads those of the others, if it is time. While the store is away, the last
    /// reading stays.
    pub(super) async fn exchange(&self, store: &RedisStore, clock: &dyn Clock, own: impl FnOnce() -> String) {
        let now = clock.now();
        let before = {
            let mut known = self.0.lock();
            if now < known.next {
                return;
            }
            known.next = now.after(STATUS_INTERVAL);
            known.published.clone()
        };
        let own = own();
        if let Ok(nodes) = store.publish_status(&own, before.as_deref()).await {
            let mut known = self.0.lock();
            known.fleet = FleetStatuses { read_at: Some(clock.wall()), own: store.node().to_owned(), nodes };
            known.published = Some(own);
        }
    }

    /// Removes the text of this node, which stops.
    pub(super) async fn withdraw(&self, store: &RedisStore) {
        let published = self.0.lock().published.take();
        if let Some(own) = published {
            let _ = store.withdraw_status(&own).await; // a store that is away forgets it by itself
        }
    }

    /// The last reading.
    pub(super) fn known(&self) -> FleetStatuses {
        self.0.lock().fleet.clone()
    }
}
