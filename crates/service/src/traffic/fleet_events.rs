//! What happens at other nodes, for those who listen at this one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tollgate_store_redis::RedisStore;

use super::live::LiveEvent;
use super::monitor::TrafficMonitor;
use super::other_counts::OtherCounts;
use super::question::{TrafficQuestion, TrafficScope};

/// How often the other nodes are asked while there are listeners.
const INTERVAL: Duration = Duration::from_secs(1);

impl TrafficMonitor {
    /// Asks the other nodes each second what happened, as long as events are listened to here.
    pub(super) async fn follow_others(&self, store: &RedisStore) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut known: BTreeMap<u64, u64> = BTreeMap::new();
        loop {
            ticks.tick().await;
            if !self.live.has_listeners() {
                known.clear();
                continue;
            }
            let question = TrafficQuestion::Events(known.clone());
            let views = self.ask_others(store, &TrafficScope::default(), &question).await;
            let mut counts = OtherCounts { read_at: self.now(), ..OtherCounts::default() };
            for view in views {
                known.insert(view.process, view.recorded);
                counts.add(&view);
                view.decisions.into_iter().for_each(|refused| self.live.send(LiveEvent::Refused(Arc::new(refused))));
            }
            *self.others.lock() = counts;
        }
    }
}
