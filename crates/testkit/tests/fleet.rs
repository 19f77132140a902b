//! A fleet of one over the in-memory store: the suite that every store passes, with the deny cache and without.

use std::sync::Arc;

use tollgate_core::{Clock, ManualClock, Span, Time};
use tollgate_store::{Fleet, FleetConfig, Memory, MemoryConfig};
use tollgate_testkit::suite::{self, Fixture};

struct Alone {
    fleet: Fleet<Memory>,
    /// The store's clock, which the suite also sets back.
    store: ManualClock,
    /// The node's clock, which is monotonic. It advances by a second when the store's steps back: by then the deny cache
    /// must have noticed.
    node: ManualClock,
}

impl Alone {
    fn new(config: FleetConfig) -> Alone {
        let (store, node) = (ManualClock::at(Time::from_secs(1_700_000_000)), ManualClock::at(Time::from_secs(5)));
        let memory = Memory::with_clock(MemoryConfig::default(), Arc::new(store.clone()));
        Alone { fleet: Fleet::new(memory, config, Arc::new(node.clone())), store, node }
    }
}

impl Fixture for Alone {
    type Store = Fleet<Memory>;

    fn store(&self) -> &Fleet<Memory> {
        &self.fleet
    }

    fn set_time(&self, now: Time) {
        let before = self.store.now();
        self.node.advance(if now < before { Span::SECOND } else { now.since(before) });
        self.store.set(now);
    }
}

#[tokio::test]
async fn a_fleet_passes_the_suite() {
    let config = FleetConfig { deny_cache_ttl: Span::ZERO, ..FleetConfig::default() };
    suite::run(async || Alone::new(config)).await;
}

#[tokio::test]
async fn a_fleet_passes_the_suite_with_the_deny_cache() {
    // A tenth of the suite's windows, as the default is of a second.
    let config = FleetConfig { deny_cache_ttl: Span::from_nanos(100), ..FleetConfig::default() };
    suite::run(async || Alone::new(config)).await;
}
