//! The traffic of a fleet: every node publishes its totals in the shared store, and sums those of the others.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tollgate_analytics::TrafficCounts;
use tollgate_core::{Span, Time};
use tollgate_store_redis::{NodeReport, RedisStore};

use super::found::NamedTotals;
use super::monitor::TrafficMonitor;
use super::node_view::NodeView;
use super::question::TrafficScope;
use crate::store::ConfiguredStore;

/// How often a node reports.
const REPORT_INTERVAL: Span = Span::from_secs(5);
/// A node that answered so long ago is expected to answer again.
const ANSWERED_FOR: Span = Span::from_secs(20);
/// What reports cover, in seconds.
const WINDOWS: [usize; 5] = [10, 60, 300, 900, 3600];

/// Another node of the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportingNode {
    /// Its name.
    pub node: String,
    /// When it last reported.
    pub seen_at: Time,
    /// True if it stopped to report.
    pub is_missing: bool,
    /// What it counted in the namespaces of the scope; nothing if it is missing.
    pub counts: Vec<NamedTotals>,
}

impl TrafficMonitor {
    /// Publishes the totals of this node and reads those of the others, if it is time and the store is shared. While the
    /// store is away, the last reports grow old.
    pub async fn exchange_reports(&self, store: &ConfiguredStore) {
        let ConfiguredStore::Shared(node) = store else { return };
        let now = self.now();
        let before = {
            let mut known = self.reports.0.lock();
            if now < known.next && known.next.since(now) <= REPORT_INTERVAL {
                return;
            }
            known.next = now.after(REPORT_INTERVAL);
            known.published.clone()
        };
        let own = self.report();
        if let Ok(nodes) = node.fleet.inner().publish_report(&own, before.as_deref()).await {
            let mut known = self.reports.0.lock();
            (known.published, known.read_at, known.nodes) = (Some(own), now, nodes);
        }
    }

    /// The totals of this node by namespace, as text.
    fn report(&self) -> String {
        let scope = TrafficScope::default();
        let mut report = Value::Object(serde_json::Map::new());
        for (place, seconds) in WINDOWS.iter().enumerate() {
            for own in self.totals(&scope, *seconds).iter().filter(|own| own.rule.is_empty()) {
                let TrafficCounts { allowed, denied, shadow_denied, cost } = own.counts;
                let rows = report.as_object_mut().map(|all| all.entry(&own.namespace).or_insert_with(|| json!({})));
                if let Some(rows) = rows.and_then(Value::as_object_mut) {
                    let window = WINDOWS.get(place).copied().unwrap_or_default().to_string();
                    rows.insert(window, json!([allowed, denied, shadow_denied, cost]));
                }
            }
        }
        // The busiest namespaces: what does not fit is left out.
        while report.to_string().len() > RedisStore::REPORT_BYTES_MAX {
            let Some(all) = report.as_object_mut() else { break };
            let least = all.iter().min_by_key(|(_, rows)| rows.pointer("/3600/0").and_then(Value::as_u64));
            let Some(name) = least.map(|(name, _)| name.clone()) else { break };
            all.remove(&name);
        }
        report.to_string()
    }

    /// The names of the other nodes that reported or answered a moment ago.
    pub(super) fn live_nodes(&self) -> BTreeSet<String> {
        let reporting = self.other_nodes(&TrafficScope { namespaces: Some(Vec::new()) }, 0).into_iter();
        let mut live: BTreeSet<String> = reporting.filter(|node| !node.is_missing).map(|node| node.node).collect();
        live.extend(self.reports.0.lock().answered.keys().cloned());
        live.remove(self.node()); // the process before this one, which ended a moment ago
        live
    }

    /// Remembers for a while which nodes answered.
    pub(super) fn note_answers(&self, views: &[NodeView]) {
        let now = self.now();
        let mut known = self.reports.0.lock();
        known.answered.retain(|_, at| now.since(*at) <= ANSWERED_FOR);
        known.answered.extend(views.iter().map(|view| (view.node.clone(), now)));
    }

    /// The other nodes of the fleet, and what they counted in the last seconds: one of the windows of reports.
    pub fn other_nodes(&self, scope: &TrafficScope, seconds: usize) -> Vec<ReportingNode> {
        let now = self.now();
        let known = self.reports.0.lock();
        let late = now.since(known.read_at);
        let node = |report: &NodeReport| {
            let aged = NodeReport { age: report.age.plus(late), ..report.clone() };
            let is_missing = aged.is_missing();
            ReportingNode {
                node: aged.name().to_owned(),
                seen_at: now.before(aged.age),
                is_missing,
                counts: if is_missing { Vec::new() } else { counts_of(&aged.report, scope, seconds) },
            }
        };
        known.nodes.iter().map(node).collect()
    }
}

/// The counts of a report. It is text of another node, so nothing about it is taken for granted.
fn counts_of(report: &str, scope: &TrafficScope, seconds: usize) -> Vec<NamedTotals> {
    let report: Value = serde_json::from_str(report).unwrap_or_default();
    let all = report.as_object().into_iter().flatten().filter(|(namespace, _)| scope.has(namespace));
    let read = |(namespace, rows): (&String, &Value)| {
        let row = rows.get(seconds.to_string())?;
        let number = |place: usize| row.get(place).and_then(Value::as_u64).unwrap_or_default();
        let counts = TrafficCounts { allowed: number(0), denied: number(1), shadow_denied: number(2), cost: number(3) };
        Some(NamedTotals { namespace: namespace.clone(), rule: String::new(), counts })
    };
    all.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_other_nodes_are_read_within_the_scope() {
        let report = r#"{"a":{"60":[1,2,3,4]},"b":{"60":[9,9,9,9]}}"#;
        let scope = TrafficScope { namespaces: Some(vec!["a".to_owned()]) };
        let counts = TrafficCounts { allowed: 1, denied: 2, shadow_denied: 3, cost: 4 };
        let expected = NamedTotals { namespace: "a".to_owned(), rule: String::new(), counts };
        assert_eq!(counts_of(report, &scope, 60), [expected]);
        assert_eq!(counts_of(report, &TrafficScope::default(), 60).len(), 2);
        for broken in ["", "[]", "{\"a\":1}", "{\"a\":{\"60\":{}}}", "{\"a\":{\"60\":[-1,\"x\"]}}"] {
            let counts: TrafficCounts = counts_of(broken, &scope, 60).iter().map(|own| own.counts).sum();
            assert!(counts.is_zero(), "{broken}");
        }
    }
}
