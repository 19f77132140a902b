//! Gateways that tell their callers apart, and the question which bucket a request was counted in.

use std::sync::Arc;
use std::time::Duration;

use tokio::time;
use tollgate_config::Config;
use tollgate_core::{ManualClock, Time};

use crate::app::App;
use crate::issuer::NOW;
use crate::rig::{Caller, Rig};

/// One bucket for each client: a proven one, or an address.
pub const BY_CLIENT: &str = "rules: [{ name: client, key_by: client_key, limit: { requests: 1000000, window: 1d } }]\n";

/// A gateway whose clock stands still, so that only requests change what is left.
pub struct IdentityRig {
    pub rig: Rig,
    pub app: App,
    pub clock: ManualClock,
}

impl IdentityRig {
    /// With this beginning of its routes file, and these files beside it.
    pub async fn start(identity: &str, files: &[(&str, &[u8])]) -> IdentityRig {
        IdentityRig::with(BY_CLIENT, identity, files, |_| {}).await
    }

    pub async fn with(
        rules: &str,
        identity: &str,
        files: &[(&str, &[u8])],
        change: impl FnOnce(&mut Config),
    ) -> IdentityRig {
        IdentityRig::routed(rules, identity, "", files, change).await
    }

    /// The same with options of the route.
    pub async fn routed(
        rules: &str,
        identity: &str,
        options: &str,
        files: &[(&str, &[u8])],
        change: impl FnOnce(&mut Config),
    ) -> IdentityRig {
        let app = App::start().await;
        let clock = ManualClock::at(Time::from_secs(NOW));
        let upstreams = format!("upstreams: {{ api: {{ servers: {} }} }}", app.url());
        let routes = format!("{identity}\n{upstreams}\nroutes: [{{ upstream: api{options} }}]\n");
        let rig = Rig::on_clock(Arc::new(clock.clone()), rules, |config, dir| {
            files.iter().for_each(|(name, bytes)| std::fs::write(dir.join(name), bytes).unwrap());
            std::fs::write(dir.join("routes.yaml"), routes).unwrap();
            config.gateway.routes = Some(dir.join("routes.yaml"));
            change(config);
        });
        IdentityRig { rig, app, clock }
    }

    /// What is left of the bucket that a request with these fields is counted in.
    pub async fn left(&self, fields: &str) -> u64 {
        left(&mut self.rig.connect().await, fields).await
    }

    /// Whether a request with these fields has a bucket of its own. Otherwise it must have been counted in that of its
    /// address.
    pub async fn is_own(&self, fields: &str) -> bool {
        let before = self.left("").await;
        self.left(fields).await;
        match before - self.left("").await {
            1 => true,
            2 => false,
            other => panic!("two requests of one address, and {other} were counted: {fields:?}"),
        }
    }
}

/// The same over a connection.
pub async fn left(caller: &mut Caller, fields: &str) -> u64 {
    let answer = caller.get("/x", fields).await;
    assert_eq!(answer.status, 200, "{fields:?}: {answer:?}");
    answer.field("X-RateLimit-Remaining").expect("a limit").parse().unwrap()
}

/// Lets all timers see this much time pass. The clock of limits stands still.
pub async fn leap(span: Duration) {
    time::pause();
    time::advance(span).await;
    time::resume();
}
