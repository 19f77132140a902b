//! Questions of operators, answered by the monitor.

use tollgate_analytics::{
    DecisionFilter, LimitChange, Ranking, RecentDecision, Resolution, RuleIndex, TopClients, TrafficCounts,
    TrafficSeries, WhatIf,
};
use tollgate_core::{Span, Time};
use tollgate_engine::DecisionId;

use super::found::{ClientQuestion, DecisionQuestion, FoundDecision, NamedTotals, TrafficScope, found};
use super::generation_rules::GenerationRules;
use super::monitor::{TrafficMonitor, TrafficState};
use crate::violations::is_digest;

impl TrafficMonitor {
    /// What each namespace and rule counted in the last seconds, up to and with the last complete one.
    pub fn totals(&self, scope: &TrafficScope, seconds: usize) -> Vec<NamedTotals> {
        let state = self.state.lock();
        let totals = state.traffic.totals(self.last_second(), seconds, |namespace| scope.has(namespace));
        let counts = totals.iter().map(|totals| NamedTotals {
            namespace: totals.namespace.to_owned(),
            rule: totals.rule.to_owned(),
            counts: totals.counts,
        });
        counts.collect()
    }

    /// The counts over time of all namespaces, of one rule, or of a client.
    pub fn series(
        &self,
        scope: &TrafficScope,
        rule: Option<&str>,
        client: Option<ClientQuestion<'_>>,
        resolution: Resolution,
        steps: usize,
    ) -> TrafficSeries {
        let state = self.state.lock();
        let until = self.last_second();
        let mut sum = TrafficSeries { start: until, resolution, steps: vec![TrafficCounts::default(); steps] };
        let mut add = |series: TrafficSeries| {
            sum.start = series.start;
            sum.steps.iter_mut().zip(series.steps).for_each(|(sum, step)| sum.add(step));
        };
        let traffic = &state.traffic;
        match client {
            Some(client) => {
                let indexes = rule.map(|rule| state.rules_named(scope, rule));
                for key in self.keys_of(&state, scope, client) {
                    match &indexes {
                        None => add(traffic.client_series(key, None, resolution, until, steps)),
                        Some(all) => all
                            .iter()
                            .for_each(|rule| add(traffic.client_series(key, Some(*rule), resolution, until, steps))),
                    }
                }
            }
            None => state
                .rules_named(scope, rule.unwrap_or_default())
                .into_iter()
                .for_each(|rule| add(traffic.series(rule, resolution, until, steps))),
        }
        if sum.start == until {
            sum.start = traffic.series(RULE_OF_NOTHING, resolution, until, steps).start;
        }
        sum
    }

    /// A ranking of clients, and namespace and name of the rule of each.
    pub fn top(
        &self,
        scope: &TrafficScope,
        rule: Option<&str>,
        by: Ranking,
        most: usize,
    ) -> (TopClients, Vec<(String, String)>) {
        let state = self.state.lock();
        let is_wanted = |namespace: &str, name: &str| scope.has(namespace) && rule.is_none_or(|rule| rule == name);
        let top = state.traffic.top(by, self.clock.wall(), most, is_wanted);
        let name = |rule: RuleIndex| {
            let (namespace, rule) = state.traffic.name(rule);
            (namespace.to_owned(), rule.to_owned())
        };
        let names = top.clients.iter().map(|client| name(client.rule)).collect();
        (top, names)
    }

    /// How many clients are limited now, and whether none is missing from that number.
    pub fn limited_now(&self, scope: &TrafficScope) -> (usize, bool) {
        self.state.lock().traffic.limited_now(self.clock.wall(), |namespace| scope.has(namespace))
    }

    /// Recent decisions, the latest first.
    pub fn decisions(&self, scope: &TrafficScope, question: DecisionQuestion<'_>, most: usize) -> Vec<FoundDecision> {
        let state = self.state.lock();
        let recent = state.traffic.recent();
        let before = question.before.and_then(|id| recent.get(id.0)).map(|decision| decision.sequence);
        if question.before.is_some() && before.is_none() {
            return Vec::new(); // it is gone, and what was before it too
        }
        let filter = DecisionFilter {
            keys: question.client.map(|client| self.keys_of(&state, scope, client)),
            rules: question.rule.map(|rule| state.rules_named(scope, rule)),
            namespaces: scope.namespaces.as_ref().map(|_| state.rules_named(scope, "")),
            is_allowed: question.is_allowed,
            before,
        };
        recent.find(&filter, most).into_iter().map(|decision| state.found(decision)).collect()
    }

    /// The decision with an id, if it was kept and may be seen.
    pub fn decision(&self, scope: &TrafficScope, id: DecisionId) -> Option<FoundDecision> {
        let state = self.state.lock();
        let found = state.found(state.traffic.recent().get(id.0)?);
        scope.has(&found.namespace).then_some(found)
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
    fn keys_of(&self, state: &TrafficState, scope: &TrafficScope, client: ClientQuestion<'_>) -> Vec<u64> {
        let namespaces = state.traffic.rules().filter(|(_, namespace, rule)| rule.is_empty() && scope.has(namespace));
        let mut keys: Vec<u64> = namespaces.map(|(_, namespace, _)| self.client_key(namespace, client.text)).collect();
        if client.text.split(['=', ',']).any(is_digest) {
            let mut known = state.traffic.known_clients();
            known.retain(|(_, name)| (client.shown)(name) == client.text);
            keys.extend(known.into_iter().map(|(key, _)| key));
        }
        keys
    }

    /// The last second that is over.
    pub(super) fn last_second(&self) -> Time {
        self.clock.wall().before(Span::SECOND)
    }
}

/// An index that no rule has.
const RULE_OF_NOTHING: RuleIndex = RuleIndex::NONE;

impl TrafficState {
    /// The rules of this name in a scope.
    fn rules_named(&self, scope: &TrafficScope, name: &str) -> Vec<RuleIndex> {
        let all = self.traffic.rules().filter(|(_, namespace, rule)| *rule == name && scope.has(namespace));
        all.map(|(index, ..)| index).collect()
    }

    fn found(&self, decision: &RecentDecision) -> FoundDecision {
        let generation = self.generations.iter().rev().find(|known| known.number == decision.generation);
        match generation.or_else(|| self.generations.back()) {
            Some(generation) => found(decision, &self.traffic, generation),
            None => found(decision, &self.traffic, &GenerationRules::none()),
        }
    }
}
