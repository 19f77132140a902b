//! What a node answers to questions of operators, its own and those of other nodes.

use tollgate_analytics::{
    ClientCounts, DecisionFilter, LimitChange, RecentDecision, Resolution, RuleIndex, TrafficCounts, TrafficSeries,
    WhatIf,
};
use tollgate_core::{Span, Time};

use super::found::{FoundDecision, NamedTotals, found};
use super::generation_rules::GenerationRules;
use super::monitor::{TrafficMonitor, TrafficState};
use super::node_view::NodeView;
use super::question::{DecisionQuestion, SeriesQuestion, TrafficQuestion, TrafficScope};
use crate::violations::is_digest;

/// Seconds that rates are the mean of.
pub const RATE_SECONDS: usize = 10;
/// Seconds of the series of an overview, at most.
const OVERVIEW_STEPS_MAX: usize = 300;
/// Refusals of one second that a node is told of another one.
const EVENTS_MAX: usize = 50;

impl TrafficMonitor {
    /// What this node knows.
    pub(super) fn view(&self, scope: &TrafficScope, question: &TrafficQuestion) -> NodeView {
        let (node, process) = (self.node().to_owned(), self.link.process());
        let empty = NodeView { node, process, ..NodeView::default() };
        let now = self.now();
        match question {
            TrafficQuestion::Overview { seconds } => {
                let steps = (*seconds).min(OVERVIEW_STEPS_MAX);
                let all = SeriesQuestion { rule: None, client: None, resolution: Resolution::Second, steps };
                let refused = ClientCounts::Refusals;
                let state = self.state.lock();
                NodeView {
                    totals: state.totals(scope, self.last_second(), *seconds),
                    recent: state.totals(scope, self.last_second(), RATE_SECONDS),
                    limited: state.traffic.limited_keys(now, |namespace| scope.has(namespace)),
                    series: Some(self.series(&state, scope, &all)),
                    clients: state.traffic.clients(refused, now, |namespace, _| scope.has(namespace)),
                    ..empty
                }
            }
            TrafficQuestion::Series(wanted) => {
                let series = self.series(&self.state.lock(), scope, wanted);
                NodeView { series: Some(series), ..empty }
            }
            TrafficQuestion::Clients { counts, rule } => {
                let is_wanted =
                    |namespace: &str, name: &str| scope.has(namespace) && rule.as_ref().is_none_or(|rule| rule == name);
                NodeView { clients: self.state.lock().traffic.clients(*counts, now, is_wanted), ..empty }
            }
            TrafficQuestion::Decisions(wanted) => NodeView { decisions: self.decisions(scope, wanted), ..empty },
            TrafficQuestion::Decision(id) => {
                let state = self.state.lock();
                let found = state.traffic.recent().get(id.0).map(|decision| state.found(decision, self.node()));
                NodeView { decisions: found.filter(|found| scope.has(&found.namespace)).into_iter().collect(), ..empty }
            }
            TrafficQuestion::Events(after) => {
                let state = self.state.lock();
                let recent = state.traffic.recent();
                let recorded = recent.recorded();
                // A node that begins to listen is told of what comes from now on.
                let after = after.get(&process).copied().unwrap_or(recorded);
                let refused = recent.refused_after(after, EVENTS_MAX);
                NodeView {
                    recent: state.totals(scope, self.last_second(), 1),
                    limited: state.traffic.limited_keys(now, |namespace| scope.has(namespace)),
                    decisions: refused.into_iter().map(|decision| state.found(decision, self.node())).collect(),
                    recorded,
                    ..empty
                }
            }
        }
    }

    /// What each namespace and rule counted in the last seconds, up to and with the last complete one.
    pub(super) fn totals(&self, scope: &TrafficScope, seconds: usize) -> Vec<NamedTotals> {
        self.state.lock().totals(scope, self.last_second(), seconds)
    }

    /// The counts over time of all namespaces, of one rule, or of a client.
    fn series(&self, state: &TrafficState, scope: &TrafficScope, wanted: &SeriesQuestion) -> TrafficSeries {
        let SeriesQuestion { rule, client, resolution, steps } = wanted;
        let (until, resolution, steps) = (self.last_second(), *resolution, *steps);
        let traffic = &state.traffic;
        // The series of no rule has the right steps, all of them empty.
        let mut sum = traffic.series(RuleIndex::NONE, resolution, until, steps);
        let mut add = |series: TrafficSeries| {
            sum.steps.iter_mut().zip(series.steps).for_each(|(sum, step)| sum.add(step));
        };
        match client {
            Some(client) => {
                let indexes = rule.as_ref().map(|rule| state.rules_named(scope, rule));
                for key in self.keys_of(state, scope, client) {
                    match &indexes {
                        None => add(traffic.client_series(key, None, resolution, until, steps)),
                        Some(all) => all
                            .iter()
                            .for_each(|rule| add(traffic.client_series(key, Some(*rule), resolution, until, steps))),
                    }
                }
            }
            None => state
                .rules_named(scope, rule.as_deref().unwrap_or_default())
                .into_iter()
                .for_each(|rule| add(traffic.series(rule, resolution, until, steps))),
        }
        sum
    }

    /// Recent decisions, the latest first.
    fn decisions(&self, scope: &TrafficScope, wanted: &DecisionQuestion) -> Vec<FoundDecision> {
        let state = self.state.lock();
        let filter = DecisionFilter {
            keys: wanted.client.as_ref().map(|client| self.keys_of(&state, scope, client)),
            rules: wanted.rule.as_ref().map(|rule| state.rules_named(scope, rule)),
            namespaces: scope.namespaces.as_ref().map(|_| state.rules_named(scope, "")),
            is_allowed: wanted.is_allowed,
            before: wanted.before.as_ref().map(|place| place.bound_at(self.node())),
        };
        let found = state.traffic.recent().find(&filter, wanted.most);
        found.into_iter().map(|decision| state.found(decision, self.node())).collect()
    }

    /// What another limit of a rule would have done in the last steps.
    pub fn what_if(
        &self,
        namespace: &str,
        rule: &str,
        change: LimitChange,
        resolution: Resolution,
        steps: usize,
    ) -> WhatIf {
        let state = self.state.lock();
        let until = self.last_second();
        let Some(index) = state.traffic.find(namespace, rule) else { return WhatIf::default() };
        let mut what_if = WhatIf::default();
        for (key, name) in state.traffic.tracked_clients(index) {
            let series = state.traffic.client_series(key, Some(index), resolution, until, steps);
            let effect = change.effect_on(&series);
            if effect.requests > 0 {
                what_if.add(key, name, effect);
            }
        }
        let all = state.traffic.series(index, resolution, until, steps);
        what_if.finish(all.steps.iter().map(TrafficCounts::requests).sum())
    }

    /// The limit of a rule in force.
    pub fn limit_of(&self, namespace: &str, rule: &str) -> Option<LimitChange> {
        let state = self.state.lock();
        let limit = state.generations.back()?.named(namespace, rule)?.limit?;
        let burst = matches!(limit, tollgate_core::Limit::Gcra(_)).then(|| limit.capacity());
        Some(LimitChange { units: limit.requests(), window: limit.window(), burst })
    }

    /// The digests of a client in the namespaces of a scope. A digest as it is shown is compared with all clients that
    /// are known.
    fn keys_of(&self, state: &TrafficState, scope: &TrafficScope, client: &str) -> Vec<u64> {
        let namespaces = state.traffic.rules().filter(|(_, namespace, rule)| rule.is_empty() && scope.has(namespace));
        let mut keys: Vec<u64> = namespaces.map(|(_, namespace, _)| self.client_key(namespace, client)).collect();
        if let Some(shown) = self.key_hashing().filter(|_| client.split(['=', ',']).any(is_digest)) {
            let mut known = state.traffic.known_clients();
            known.retain(|(_, name)| shown.of(name) == client);
            keys.extend(known.into_iter().map(|(key, _)| key));
        }
        keys
    }

    /// The last second that is over.
    pub(super) fn last_second(&self) -> Time {
        self.clock.wall().before(Span::SECOND)
    }
}

impl TrafficState {
    fn totals(&self, scope: &TrafficScope, until: Time, seconds: usize) -> Vec<NamedTotals> {
        let totals = self.traffic.totals(until, seconds, |namespace| scope.has(namespace));
        let counts = totals.iter().map(|totals| NamedTotals {
            namespace: totals.namespace.to_owned(),
            rule: totals.rule.to_owned(),
            counts: totals.counts,
        });
        counts.collect()
    }

    /// The rules of this name in a scope.
    fn rules_named(&self, scope: &TrafficScope, name: &str) -> Vec<RuleIndex> {
        let all = self.traffic.rules().filter(|(_, namespace, rule)| *rule == name && scope.has(namespace));
        all.map(|(index, ..)| index).collect()
    }

    fn found(&self, decision: &RecentDecision, node: &str) -> FoundDecision {
        let generation = self.generations.iter().rev().find(|known| known.number == decision.generation);
        match generation.or_else(|| self.generations.back()) {
            Some(generation) => found(decision, &self.traffic, generation, node),
            None => found(decision, &self.traffic, &GenerationRules::none(), node),
        }
    }
}
