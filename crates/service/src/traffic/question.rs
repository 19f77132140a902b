//! Questions of operators, and their answers.

use tollgate_analytics::{
    DecisionFilter, LimitChange, Ranking, RecentDecision, Resolution, RuleIndex, TopClients, Traffic, TrafficCounts,
    TrafficSeries, WhatIf,
};
use tollgate_core::{Outcome, Span, Time};
use tollgate_engine::DecisionId;

use super::generation_rules::{GenerationRules, own_limit};
use super::monitor::{TrafficMonitor, TrafficState};
use crate::violations::is_digest;

/// The namespaces that a caller may see.
#[derive(Clone, Debug, Default)]
pub struct TrafficScope {
    /// `None` for all.
    pub namespaces: Option<Vec<String>>,
}

/// Which client is meant: by its key, or by the digest that is shown of it.
#[derive(Clone, Copy)]
pub struct ClientQuestion<'a> {
    /// The text.
    pub text: &'a str,
    /// The digest that is shown of a client.
    pub shown: &'a (dyn Fn(&str) -> String + Sync),
}

/// Which decisions are wanted.
#[derive(Clone, Copy, Default)]
pub struct DecisionQuestion<'a> {
    /// Of this client.
    pub client: Option<ClientQuestion<'a>>,
    /// That this rule took part in.
    pub rule: Option<&'a str>,
    /// Only those that were allowed, or only the others.
    pub is_allowed: Option<bool>,
    /// Before the one with this id.
    pub before: Option<DecisionId>,
}

/// A decision, with names.
#[derive(Clone, Debug)]
pub struct FoundDecision {
    /// Its id.
    pub id: DecisionId,
    /// When it was made.
    pub at: Time,
    /// The namespace.
    pub namespace: String,
    /// The client, in plain text.
    pub client: String,
    /// Whether the request may pass.
    pub is_allowed: bool,
    /// Units that were asked for.
    pub cost: u64,
    /// What decided.
    pub mode: &'static str,
    /// The generation of rules.
    pub generation: u64,
    /// The rulings that were kept, the deciding one first.
    pub rulings: Vec<FoundRuling>,
}

/// A ruling, with names.
#[derive(Clone, Debug)]
pub struct FoundRuling {
    /// The name of the rule.
    pub rule: String,
    /// The plan that the rule comes from.
    pub plan: Option<String>,
    /// Whether a refusal denies the request.
    pub is_enforced: bool,
    /// Whether it refused.
    pub is_refused: bool,
    /// Whether it decided.
    pub is_deciding: bool,
    /// What decided.
    pub mode: &'static str,
    /// The outcome of its bucket.
    pub outcome: Option<Outcome>,
    /// Units per window of the limit that applied.
    pub requests: u64,
    /// The window of that limit.
    pub window: Span,
    /// Units per window of the rule itself, if it is in force: another number than `requests` is that of an override.
    pub rule_requests: Option<u64>,
    /// Since when the rule refuses the client.
    pub limited_since: Option<Time>,
}

/// The counts of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTotals {
    /// The namespace.
    pub namespace: String,
    /// The rule; empty for the namespace as a whole.
    pub rule: String,
    /// What was counted.
    pub counts: TrafficCounts,
}

impl TrafficScope {
    pub(super) fn has(&self, namespace: &str) -> bool {
        self.namespaces.as_ref().is_none_or(|names| names.iter().any(|name| name == namespace))
    }
}

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

    /// A ranking of clients. The names of rules are asked for with [`rule_name`](TrafficMonitor::rule_names).
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
        let before = question.before.and_then(|id| recent.get(id.0)).map(|decision| (decision.at, decision.id));
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

/// A decision, with names.
pub(super) fn found(decision: &RecentDecision, traffic: &Traffic, generation: &GenerationRules) -> FoundDecision {
    let rulings = decision.rulings.iter().map(|ruling| {
        let (namespace, rule) = traffic.name(ruling.rule);
        let body = generation.named(namespace, rule);
        FoundRuling {
            rule: rule.to_owned(),
            plan: body.and_then(|body| body.spec.plan.as_ref()).map(|origin| origin.plan.clone()),
            is_enforced: ruling.is_enforced,
            is_refused: ruling.is_refused,
            is_deciding: ruling.is_deciding,
            mode: ruling.mode,
            outcome: ruling.outcome,
            requests: ruling.requests,
            window: ruling.window,
            rule_requests: body.and_then(|body| own_limit(body)),
            limited_since: ruling.limited_since,
        }
    });
    FoundDecision {
        id: DecisionId(decision.id),
        at: decision.at,
        namespace: traffic.name(decision.namespace).0.to_owned(),
        client: decision.client.to_string(),
        is_allowed: decision.is_allowed,
        cost: decision.cost,
        mode: decision.mode,
        generation: decision.generation,
        rulings: rulings.collect(),
    }
}
