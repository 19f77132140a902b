//! The answers of several nodes, as one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tollgate_analytics::{
    LimitedKeys, Ranking, Resolution, RuleClients, TopClients, TrafficCounts, TrafficSeries, sum_of_nodes,
};
use tollgate_core::Time;

use super::found::{FoundDecision, NamedTotals};
use super::node_view::NodeView;
use super::question::DecisionPlace;

/// What a fleet answers to a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetView {
    /// The answers: that of the node that was asked, and those of the others that it reached.
    pub views: Vec<NodeView>,
    /// Nodes that report to the store and did not answer.
    pub missing: Vec<String>,
}

impl FleetView {
    /// The nodes that are in it.
    pub fn nodes(&self) -> Vec<&str> {
        self.views.iter().map(|view| view.node.as_str()).collect()
    }

    /// What namespaces and rules counted.
    pub fn totals(&self) -> Vec<NamedTotals> {
        let mut sums: BTreeMap<(&str, &str), TrafficCounts> = BTreeMap::new();
        for own in self.views.iter().flat_map(|view| &view.totals) {
            sums.entry((&own.namespace, &own.rule)).or_default().add(own.counts);
        }
        let named = |((namespace, rule), counts): ((&str, &str), TrafficCounts)| NamedTotals {
            namespace: namespace.to_owned(),
            rule: rule.to_owned(),
            counts,
        };
        sums.into_iter().map(named).collect()
    }

    /// The clients that are limited now, each counted once.
    pub fn limited(&self) -> LimitedKeys {
        let mut all = LimitedKeys { is_exact: true, ..LimitedKeys::default() };
        self.views.iter().for_each(|view| all.add(view.limited.clone()));
        all
    }

    /// Counts over time: steps that begin at the same time are added. The steps are those of the node that was asked.
    pub fn series(&self) -> TrafficSeries {
        let mut all = self.views.iter().filter_map(|view| view.series.as_ref());
        let none = TrafficSeries { start: Time::ZERO, resolution: Resolution::Second, steps: Vec::new() };
        let mut sum = all.next().cloned().unwrap_or(none);
        let number = |at: Time| at.nanos() / 1_000_000_000 / sum.resolution.seconds();
        let first = number(sum.start);
        for own in all.filter(|own| own.resolution == sum.resolution) {
            // The clocks of two nodes differ a little: the same step has another place.
            let ahead = number(own.start).abs_diff(first).try_into().unwrap_or(usize::MAX);
            let (skipped, place) = if number(own.start) < first { (ahead, 0) } else { (0, ahead) };
            let steps = sum.steps.iter_mut().skip(place).zip(own.steps.iter().skip(skipped));
            steps.for_each(|(sum, step)| sum.add(*step));
        }
        sum
    }

    /// The first clients of a ranking. Errors of nodes add up: see [`RuleClients::add`].
    pub fn top(&self, by: Ranking, now: Time, most: usize) -> TopClients {
        let all: Vec<RuleClients> = sum_of_nodes(self.views.iter().flat_map(|view| view.clients.clone()));
        TopClients::of(&all, by, now, most)
    }

    /// Decisions, the last first, and whether there are more. A node that left some out ends the list where its own ends:
    /// a page must not skip them.
    pub fn decisions(&self, most: usize) -> (Vec<FoundDecision>, bool) {
        let ends = self.views.iter().filter(|view| view.is_cut).filter_map(|view| view.decisions.last());
        let end: Option<DecisionPlace> = ends.map(FoundDecision::place).max();
        let mut all: Vec<FoundDecision> = self.views.iter().flat_map(|view| view.decisions.clone()).collect();
        all.sort_by_key(|decision| Reverse(decision.place()));
        if let Some(end) = &end {
            all.retain(|decision| decision.place() >= *end);
        }
        let has_more = end.is_some() || all.len() >= most;
        all.truncate(most);
        (all, has_more)
    }

    /// The decision that was asked for; the last step of a reservation that several nodes took part in.
    pub fn decision(self) -> Option<FoundDecision> {
        self.views.into_iter().flat_map(|view| view.decisions).max_by_key(FoundDecision::place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_engine::DecisionId;

    fn view(node: &str) -> NodeView {
        NodeView { node: node.to_owned(), ..NodeView::default() }
    }

    fn decision(node: &str, at: u64, sequence: u64) -> FoundDecision {
        FoundDecision {
            id: DecisionId(at),
            node: node.to_owned(),
            sequence,
            at: Time::from_secs(at),
            namespace: "default".to_owned(),
            client: "user:1".to_owned(),
            is_allowed: false,
            cost: 1,
            mode: "store",
            generation: 1,
            rulings: Vec::new(),
        }
    }

    #[test]
    fn steps_of_clocks_that_differ_are_added_by_their_time() {
        let counts = |allowed: u64| TrafficCounts { allowed, ..TrafficCounts::default() };
        let of = |node: &str, start: u64, steps: &[u64]| NodeView {
            series: Some(TrafficSeries {
                start: Time::from_secs(start),
                resolution: Resolution::Second,
                steps: steps.iter().copied().map(counts).collect(),
            }),
            ..view(node)
        };
        let views = vec![of("a", 10, &[1, 2, 3]), of("b", 11, &[10, 20, 30]), of("c", 9, &[100, 200, 300])];
        let sum = FleetView { views, missing: Vec::new() }.series();
        let allowed: Vec<u64> = sum.steps.iter().map(|step| step.allowed).collect();
        assert_eq!((sum.start, allowed), (Time::from_secs(10), vec![201, 312, 23]));
    }

    #[test]
    fn a_list_ends_where_a_node_left_decisions_out() {
        let a = NodeView { decisions: vec![decision("a", 9, 3), decision("a", 7, 2)], is_cut: true, ..view("a") };
        let b = NodeView { decisions: vec![decision("b", 8, 5), decision("b", 6, 4)], ..view("b") };
        let fleet = FleetView { views: vec![a, b], missing: Vec::new() };
        let (found, has_more) = fleet.decisions(10);
        let times: Vec<u64> = found.iter().map(|own| own.id.0).collect();
        assert_eq!((times, has_more), (vec![9, 8, 7], true), "b's decision of 6 may follow others of a");
        assert_eq!(fleet.decisions(1).0.len(), 1);
    }

    #[test]
    fn a_place_between_two_nodes_of_the_same_time_is_kept_by_both() {
        let place = decision("b", 5, 3).place();
        assert_eq!(place.bound_at("a"), (Time::from_secs(5), 4), "a's third decision of that time comes after it");
        assert_eq!(place.bound_at("b"), (Time::from_secs(5), 3));
        assert_eq!(place.bound_at("c"), (Time::from_secs(5), 3));
    }

    #[test]
    fn a_client_that_two_nodes_refuse_is_limited_once() {
        let keys = |keys: &[u64]| LimitedKeys {
            keys: BTreeMap::from([("default".to_owned(), keys.iter().copied().collect())]),
            is_exact: true,
        };
        let views =
            vec![NodeView { limited: keys(&[1, 2]), ..view("a") }, NodeView { limited: keys(&[2, 3]), ..view("b") }];
        let limited = FleetView { views, missing: Vec::new() }.limited();
        assert_eq!((limited.count(), limited.is_exact), (3, true));
    }
}
