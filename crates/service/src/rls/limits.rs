//! The active limits of envoyproxy/ratelimit's files, as that service lists them.

use std::fmt::Write as _;

use crate::service::Service;

impl Service {
    /// The active limits of envoyproxy/ratelimit's files, one per line: what that service serves at `/rlconfig`.
    pub fn rls_limits(&self) -> String {
        let pinned = self.engine.rules();
        let mut lines = String::new();
        for rule in pinned.rules.rules() {
            let Some(envoy) = rule.envoy.as_deref().filter(|envoy| !envoy.overrides) else { continue };
            let (requests, unit) = match envoy.limit {
                Some((requests, unit)) => (requests, unit.name().to_ascii_uppercase()),
                None => (0, "UNKNOWN".to_owned()), // unlimited
            };
            let (name, shadow, quota) = (envoy.full_key(), envoy.shadow_mode, envoy.quota_mode);
            let _ = writeln!(
                lines,
                "{name}: unit={unit} requests_per_unit={requests}, shadow_mode: {shadow}, quota_mode: {quota}"
            ); // a String takes everything
        }
        lines
    }
}
