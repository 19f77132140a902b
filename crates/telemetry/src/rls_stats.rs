//! Statistics of envoyproxy/ratelimit under their original names, so that existing dashboards and alarms keep working.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::page::{MetricFamilies, MetricsPage};

/// Most names: a file may request one per descriptor value, and values come from callers.
const NAMES_MAX: usize = 10_000;
/// The prefix of the metric names.
pub(super) const PREFIX: &str = "ratelimit_service_rate_limit_";
/// The name that further ones are counted under.
const OTHERS: &str = "other";

/// Counts by rule, and of calls.
#[derive(Debug, Default)]
pub struct RlsStats {
    rules: RwLock<HashMap<String, Arc<RlsRuleCounts>>>,
    /// Counts of calls by end.
    pub calls: RlsCalls,
}

/// Calls that ended otherwise than by the rules.
#[derive(Debug, Default)]
pub struct RlsCalls([AtomicU64; 3]);

/// How such a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RlsCallEnd {
    /// The message is invalid.
    ServiceError,
    /// The store did not answer.
    StoreError,
    /// It was denied, and passed because of shadow mode.
    Shadowed,
}

impl RlsCalls {
    /// Counts a call.
    pub fn count(&self, end: RlsCallEnd) {
        if let Some(count) = self.0.get(end as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number of calls with this end.
    pub fn ended(&self, end: RlsCallEnd) -> u64 {
        self.0.get(end as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

/// The count of one descriptor at one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RlsObservation {
    /// Units asked for.
    pub hits: u64,
    /// Units counted in the window, these included.
    pub used: u64,
    /// Units allowed in the window.
    pub limit: u64,
    /// Units from which on a hit is near the limit.
    pub near: u64,
    /// A shadow rule.
    pub shadow: bool,
}

#[derive(Debug, Default)]
struct RlsRuleCounts([AtomicU64; NAMES.len()]);

const NAMES: [&str; 6] =
    ["total_hits", "over_limit", "near_limit", "within_limit", "shadow_mode", "over_limit_with_local_cache"];

/// Replaces control characters: values come from callers.
fn plain(name: &str) -> Cow<'_, str> {
    match name.contains(char::is_control) {
        true => name.replace(char::is_control, "_").into(),
        false => name.into(),
    }
}

impl RlsStats {
    /// Counts an observation. `name` is the name of the rule in that service: `domain.key_value`.
    pub fn count(&self, name: &str, observation: &RlsObservation) {
        self.add(name, observation.parts());
    }

    /// Counts hits that the local cache refused.
    pub fn count_cached(&self, name: &str, hits: u64, shadow: bool) {
        self.add(name, [hits, hits, 0, 0, if shadow { hits } else { 0 }, hits]);
    }

    fn add(&self, name: &str, parts: [u64; NAMES.len()]) {
        let counts = self.counts_of(&plain(name));
        for (count, more) in counts.0.iter().zip(parts) {
            // Callers choose the hits, up to the largest number: a count that wraps would look like a restart.
            count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(now.saturating_add(more))).ok();
        }
    }

    fn counts_of(&self, name: &str) -> Arc<RlsRuleCounts> {
        if let Some(counts) = self.rules.read().get(name) {
            return counts.clone();
        }
        let mut all = self.rules.write();
        let name = if all.len() < NAMES_MAX || all.contains_key(name) { name } else { OTHERS };
        all.entry(name.to_owned()).or_default().clone()
    }

    /// Every count by its full name, in order.
    pub fn all(&self) -> BTreeMap<String, u64> {
        let all = self.rules.read();
        let named = all.iter().flat_map(|(name, counts)| {
            let counts = NAMES.iter().zip(&counts.0);
            counts.map(move |(stat, count)| (format!("{name}.{stat}"), count.load(Ordering::Relaxed)))
        });
        named.collect()
    }

    /// Writes one family per count, labelled by domain and keys: as gauges in OpenMetrics, where names of counters must
    /// end in `_total`, and as counters in Prometheus text.
    fn encode(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let all: BTreeMap<String, Arc<RlsRuleCounts>> =
            self.rules.read().iter().map(|(name, own)| (name.clone(), own.clone())).collect();
        if all.is_empty() {
            return Ok(());
        }
        for (place, stat) in NAMES.iter().enumerate() {
            let series = all.iter().filter_map(|(name, counts)| {
                let count = counts.0.get(place)?.load(Ordering::Relaxed);
                Some((labels(name), count))
            });
            let help = "As envoyproxy/ratelimit counts the rules of its files";
            page.gauges(&format!("{PREFIX}{stat}"), help, series)?;
        }
        Ok(())
    }
}

impl MetricFamilies for RlsStats {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        self.encode(page)
    }
}

/// `edge.a_b.c` is the domain `edge`, and the keys `a_b` and `c`.
fn labels(name: &str) -> Vec<(&'static str, String)> {
    let mut parts = name.splitn(3, '.');
    let names = ["domain", "key1", "key2"];
    names.into_iter().zip(&mut parts).map(|(label, part)| (label, part.to_owned())).collect()
}

impl RlsObservation {
    /// The increments of each count, in the order of [`NAMES`]. Hits that cross a threshold are split at it.
    fn parts(&self) -> [u64; NAMES.len()] {
        let RlsObservation { hits, used, limit, near, shadow } = *self;
        let before = used.saturating_sub(hits);
        let over = used > limit;
        let over_limit = if over { used - limit.max(before) } else { 0 };
        let near_limit = used.min(limit).saturating_sub(near.max(before));
        [hits, over_limit, near_limit, if over { 0 } else { hits }, if over && shadow { hits } else { 0 }, 0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_split_at_thresholds() {
        let observation = |hits, used| RlsObservation { hits, used, limit: 10, near: 8, shadow: false }.parts();
        assert_eq!(observation(1, 8), [1, 0, 0, 1, 0, 0]);
        assert_eq!(observation(1, 9), [1, 0, 1, 1, 0, 0]);
        assert_eq!(observation(3, 10), [3, 0, 2, 3, 0, 0]);
        assert_eq!(observation(5, 12), [5, 2, 2, 0, 0, 0], "two near, two over, one neither");
        assert_eq!(observation(2, 14), [2, 2, 0, 0, 0, 0]);
        assert_eq!(observation(0, 14), [0, 0, 0, 0, 0, 0]);
        assert_eq!(RlsObservation { hits: 4, used: 14, limit: 10, near: 8, shadow: true }.parts(), [4, 4, 0, 0, 4, 0]);
    }

    #[test]
    fn counts_saturate_and_names_have_no_line_breaks() {
        let domains = RlsStats::default();
        let observation = RlsObservation { hits: u64::MAX, used: u64::MAX, limit: 10, near: 8, shadow: false };
        (0..2).for_each(|_| domains.count("d.k_a\nd.total_hits: 1\r", &observation));
        let all = domains.all();
        assert_eq!(all.get("d.k_a_d.total_hits: 1_.total_hits"), Some(&u64::MAX), "{all:?}");
    }

    #[test]
    fn the_number_of_names_is_bounded() {
        let domains = RlsStats::default();
        let observation = RlsObservation { hits: 1, used: 1, limit: 9, near: 7, shadow: false };
        (0..NAMES_MAX + 5).for_each(|number| domains.count(&format!("d.k_{number}"), &observation));
        let all = domains.all();
        assert_eq!(all.len(), (NAMES_MAX + 1) * NAMES.len());
        assert_eq!(all.get("other.total_hits"), Some(&5));
    }
}
