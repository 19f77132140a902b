//! Nodes of a fleet, and what is asked of them.

use std::time::Duration;

use serde_json::Value;
use tollgate_config::{Config, StoreSettings};
use tollgate_lab::patience::eventually;
use tollgate_lab::redis::RedisServer;

use crate::rig::{Rig, call};

/// How long a node has until it notices.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A node over this store.
pub async fn node(redis: &RedisServer, rules: &str) -> Rig {
    let url = redis.url();
    Rig::open(rules, |config, _| *config = Config { store: store(&url), ..config.clone() }).await
}

/// Settings of a store at this URL, with patience for a machine that is busy with other tests.
pub fn store(url: &str) -> StoreSettings {
    let place = url.parse().expect("a URL");
    let (timeout, decision_deadline) = (Duration::from_secs(2), Duration::from_secs(4));
    StoreSettings { place, timeout, decision_deadline, ..StoreSettings::default() }
}

impl Rig {
    /// What a check says.
    pub async fn check(&self, body: &str) -> Value {
        let answer = self.post("/v1/check", body).await;
        assert_eq!(answer.status, 200, "{}", answer.head);
        answer.json()
    }

    /// The sum of all series of this name on the page of metrics.
    pub async fn figure(&self, name: &str) -> f64 {
        let page = String::from_utf8(call(&self.admin, "GET", "/metrics", "", "").await.body).expect("text");
        let series =
            page.lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{'])));
        series.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }

    /// Waits until a check is decided in this mode.
    pub async fn until_mode(&self, body: &str, mode: &str) -> Value {
        let ask = async || Some(self.check(body).await).filter(|answer| answer["mode"] == mode);
        eventually(mode, PATIENCE, ask).await
    }
}
