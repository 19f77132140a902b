//! Everything that is known of the traffic.

use std::collections::{BTreeMap, HashMap};

use tollgate_core::{Span, Time};

use crate::limited_client::LimitedClient;
use crate::limited_keys::LimitedKeys;
use crate::ranking::{Ranking, TopClients};
use crate::recent::RecentDecisions;
use crate::rule_clients::{ClientCounts, RuleClients};
use crate::rule_index::RuleIndex;
use crate::rule_traffic::{RuleSummaries, RuleTraffic};
use crate::sample::{DecisionSample, RulingSample};
use crate::series::{Resolution, SeriesHandle, SeriesKey, SeriesPool, TrafficSeries};
use crate::{RecentDecision, TrafficBudget, TrafficCounts};

/// Rules without decisions for so long give their summaries to others.
const IDLE: Span = Span::from_secs(900);

/// What was allowed and refused, by rule and by client.
#[derive(Debug)]
pub struct Traffic {
    budget: TrafficBudget,
    rules: Vec<RuleTraffic>,
    index: HashMap<Box<str>, HashMap<Box<str>, RuleIndex>>,
    rule_series: SeriesPool,
    client_series: SeriesPool,
    recent: RecentDecisions,
    /// Rules that have summaries.
    summarized: Vec<RuleIndex>,
    /// The number of the next rule: series of a rule that was forgotten are not those of another.
    serial: u64,
}

/// The counts of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleTotals<'a> {
    /// The rule.
    pub index: RuleIndex,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub rule: &'a str,
    /// What was counted.
    pub counts: TrafficCounts,
}

/// Stands for all rules that there is no room for.
const OTHER: &str = "__other__";

impl Traffic {
    /// Nothing was counted yet.
    pub fn new(budget: TrafficBudget) -> Traffic {
        Traffic {
            budget,
            rules: Vec::new(),
            index: HashMap::new(),
            rule_series: SeriesPool::new(budget.rule_series),
            client_series: SeriesPool::new(budget.client_series),
            recent: RecentDecisions::new(budget.recent),
            summarized: Vec::new(),
            serial: 1,
        }
    }

    /// The index of a rule; with an empty name, that of a namespace as a whole. When there are too many, that of all others.
    pub fn rule(&mut self, namespace: &str, rule: &str) -> RuleIndex {
        if let Some(known) = self.find(namespace, rule) {
            return known;
        }
        if self.rules.len() >= self.budget.rules {
            return self.find(OTHER, "").unwrap_or_else(|| self.add_rule(OTHER, ""));
        }
        self.add_rule(namespace, rule)
    }

    /// The index of a rule that was asked something.
    pub fn find(&self, namespace: &str, rule: &str) -> Option<RuleIndex> {
        self.index.get(namespace)?.get(rule).copied()
    }

    /// True if rules are not counted by name because there are too many: it is time to forget
    /// [those that are gone](Traffic::keep_rules).
    pub fn is_full(&self) -> bool {
        self.rules.len() >= self.budget.rules
    }

    /// Forgets all rules but these, and the recent decisions. Indexes of rules are no longer valid.
    pub fn keep_rules(&mut self, is_kept: impl Fn(&str, &str) -> bool) {
        let kept: Vec<RuleTraffic> =
            std::mem::take(&mut self.rules).into_iter().filter(|rule| is_kept(&rule.namespace, &rule.rule)).collect();
        self.index.clear();
        self.summarized.clear();
        self.recent = RecentDecisions::new(self.budget.recent);
        for (place, rule) in kept.iter().enumerate() {
            let index = RuleIndex(place as u32);
            self.index.entry(rule.namespace.clone()).or_default().insert(rule.rule.clone(), index);
            if rule.summaries.is_some() {
                self.summarized.push(index);
            }
        }
        self.rules = kept;
    }

    fn add_rule(&mut self, namespace: &str, rule: &str) -> RuleIndex {
        let index = RuleIndex(self.rules.len() as u32); // there are far fewer
        let key = SeriesKey(self.serial, 0);
        self.serial += 1;
        self.rules.push(RuleTraffic {
            namespace: namespace.into(),
            rule: rule.into(),
            key,
            handle: SeriesHandle::default(),
            last: Time::ZERO,
            summaries: None,
        });
        self.index.entry(namespace.into()).or_default().insert(rule.into(), index);
        index
    }

    /// Namespace and name of a rule.
    pub fn name(&self, index: RuleIndex) -> (&str, &str) {
        self.rules.get(index.0 as usize).map_or(("", ""), |rule| (&*rule.namespace, &*rule.rule))
    }

    /// Every rule that was asked something, and the namespaces as a whole.
    pub fn rules(&self) -> impl Iterator<Item = (RuleIndex, &str, &str)> {
        let all = self.rules.iter().enumerate();
        all.map(|(place, rule)| (RuleIndex(place as u32), &*rule.namespace, &*rule.rule))
    }

    /// Counts a decision. Returns what was kept of it, if it was a refusal and there was room.
    pub fn record(&mut self, sample: &DecisionSample<'_>, namespace: RuleIndex) -> Option<&RecentDecision> {
        let is_shadow = sample.rulings.iter().any(|ruling| ruling.is_refused && !ruling.is_enforced);
        let charged = sample.rulings.iter().filter_map(|ruling| ruling.outcome.map(|outcome| outcome.granted)).max();
        let counts = TrafficCounts {
            allowed: u64::from(sample.is_allowed),
            denied: u64::from(!sample.is_allowed),
            shadow_denied: u64::from(sample.is_allowed && is_shadow),
            cost: if sample.is_allowed { charged.unwrap_or(sample.cost) } else { 0 },
        };
        self.count_rule(namespace, sample.at, counts);
        let mut in_all = Some(counts);
        for ruling in sample.rulings {
            self.record_ruling(sample, ruling, &mut in_all);
        }
        let (rules, key) = (&self.rules, sample.key);
        let since = |ruling: &RulingSample| {
            let summaries = rules.get(ruling.rule.0 as usize)?.summaries.as_ref()?;
            summaries.limited(key).map(|limited| limited.since)
        };
        self.recent.record(sample, namespace, since).filter(|kept| kept.is_refused())
    }

    fn count_rule(&mut self, index: RuleIndex, at: Time, counts: TrafficCounts) {
        if let Some(rule) = self.rules.get_mut(index.0 as usize) {
            rule.last = rule.last.max(at);
            self.rule_series.count_at(&mut rule.handle, rule.key, at, counts);
        }
    }

    /// Counts what one rule made of a request. `in_all` is what became of the request, for the first rule that follows the
    /// client: the others may not.
    fn record_ruling(
        &mut self,
        sample: &DecisionSample<'_>,
        ruling: &RulingSample,
        in_all: &mut Option<TrafficCounts>,
    ) {
        let counts = TrafficCounts {
            allowed: u64::from(!ruling.is_refused || !ruling.is_enforced),
            denied: u64::from(ruling.is_refused && ruling.is_enforced),
            shadow_denied: u64::from(ruling.is_refused && !ruling.is_enforced),
            cost: ruling.outcome.map_or(0, |outcome| outcome.granted),
        };
        self.count_rule(ruling.rule, sample.at, counts);
        self.summarize(ruling.rule, sample.at);
        let Some(rule) = self.rules.get_mut(ruling.rule.0 as usize) else { return };
        let Some(summaries) = &mut rule.summaries else { return };
        if let Some(handles) = summaries.record(sample, ruling).handles {
            let at_rule = SeriesKey(rule.key.0, sample.key);
            self.client_series.count_at(&mut handles.at_rule, at_rule, sample.at, counts);
            if let Some(counts) = in_all.take() {
                self.client_series.count_at(&mut handles.in_all, SeriesKey(0, sample.key), sample.at, counts);
            }
        }
    }

    /// Gives a rule summaries. When all are given, an idle rule returns its own.
    fn summarize(&mut self, index: RuleIndex, at: Time) {
        if self.rules.get(index.0 as usize).is_none_or(|rule| rule.summaries.is_some()) {
            return;
        }
        if self.summarized.len() >= self.budget.summaries {
            let last = |index: &RuleIndex| self.rules.get(index.0 as usize).map_or(Time::ZERO, |rule| rule.last);
            let oldest = self.summarized.iter().enumerate().min_by_key(|(_, index)| last(index));
            let Some((place, oldest)) = oldest.map(|(place, index)| (place, *index)) else { return };
            if at.since(last(&oldest)) < IDLE {
                return;
            }
            self.summarized.swap_remove(place);
            self.rules.get_mut(oldest.0 as usize).into_iter().for_each(|rule| rule.summaries = None);
        }
        if let Some(rule) = self.rules.get_mut(index.0 as usize) {
            rule.summaries = Some(Box::new(RuleSummaries::new(self.budget.clients, at)));
            self.summarized.push(index);
        }
    }

    /// The counts of a rule, or of a namespace as a whole, over time.
    pub fn series(&self, index: RuleIndex, resolution: Resolution, until: Time, steps: usize) -> TrafficSeries {
        let key = self.rules.get(index.0 as usize).map_or(SeriesKey(0, 0), |rule| rule.key);
        self.rule_series.read(key, resolution, until, steps)
    }

    /// The counts of a client over time, at one rule or in all.
    pub fn client_series(
        &self,
        client: u64,
        rule: Option<RuleIndex>,
        resolution: Resolution,
        until: Time,
        steps: usize,
    ) -> TrafficSeries {
        let serial = rule.and_then(|rule| self.rules.get(rule.0 as usize)).map_or(0, |rule| rule.key.0);
        self.client_series.read(SeriesKey(serial, client), resolution, until, steps)
    }

    /// What each of these rules counted in the last seconds before `now`, without those that counted nothing.
    pub fn totals(&self, now: Time, seconds: usize, is_wanted: impl Fn(&str) -> bool) -> Vec<RuleTotals<'_>> {
        let is_active =
            |rule: &&RuleTraffic| now.since(rule.last).nanos() <= (seconds as u64 + 1) * Span::SECOND.nanos();
        let wanted = self.rules.iter().enumerate().filter(|(_, rule)| is_active(rule) && is_wanted(&rule.namespace));
        let totals = wanted.map(|(place, rule)| RuleTotals {
            index: RuleIndex(place as u32),
            namespace: &rule.namespace,
            rule: &rule.rule,
            counts: self.rule_series.read(rule.key, Resolution::Second, now, seconds).steps.into_iter().sum(),
        });
        totals.filter(|totals| !totals.counts.is_zero()).collect()
    }

    /// A ranking of the clients of these rules.
    pub fn top(&self, by: Ranking, now: Time, most: usize, is_wanted: impl Fn(&str, &str) -> bool) -> TopClients {
        TopClients::of(&self.clients(by.counts(), now, is_wanted), by, now, most)
    }

    /// The clients of these rules: what rankings are made of.
    pub fn clients(&self, counts: ClientCounts, now: Time, is_wanted: impl Fn(&str, &str) -> bool) -> Vec<RuleClients> {
        let wanted = self.summarized_rules().filter(|(_, rule)| is_wanted(&rule.namespace, &rule.rule));
        let clients = |(_, rule): (RuleIndex, &RuleTraffic)| {
            let clients = rule.summaries.as_ref()?.clients(counts, now);
            Some(RuleClients { namespace: rule.namespace.to_string(), rule: rule.rule.to_string(), ..clients })
        };
        wanted.filter_map(clients).collect()
    }

    /// How many clients are limited now, and whether none is missing from that number.
    pub fn limited_now(&self, now: Time, is_wanted: impl Fn(&str) -> bool) -> (usize, bool) {
        let limited = self.limited_keys(now, is_wanted);
        (limited.count(), limited.is_exact)
    }

    /// The clients that are limited now, by namespace.
    pub fn limited_keys(&self, now: Time, is_wanted: impl Fn(&str) -> bool) -> LimitedKeys {
        let mut all = LimitedKeys { keys: BTreeMap::new(), is_exact: true };
        for (_, rule) in self.summarized_rules().filter(|(_, rule)| is_wanted(&rule.namespace)) {
            for denied in rule.summaries.iter().flat_map(|summaries| &summaries.denied) {
                all.is_exact &= denied.floor() == 0;
                let limited =
                    denied.counters().filter(|counter| !counter.state.is_shadow && counter.state.is_limited(now));
                let mut limited = limited.map(|counter| counter.key).peekable();
                if limited.peek().is_some() {
                    all.keys.entry(rule.namespace.to_string()).or_default().extend(limited);
                }
            }
        }
        all
    }

    /// The rules that refused a client in the last minutes.
    pub fn limits_of(&self, client: u64) -> Vec<(RuleIndex, LimitedClient)> {
        let of = |(index, rule): (RuleIndex, &RuleTraffic)| Some((index, *rule.summaries.as_ref()?.limited(client)?));
        self.summarized_rules().filter_map(of).collect()
    }

    /// The clients of a rule that have series, heaviest first.
    pub fn tracked_clients(&self, rule: RuleIndex) -> Vec<(u64, String)> {
        let summaries = self.rules.get(rule.0 as usize).and_then(|rule| rule.summaries.as_ref());
        let hitters = summaries.map(|summaries| summaries.consuming_clients()).unwrap_or_default();
        hitters.hitters().iter().map(|hitter| (hitter.key, hitter.name.clone())).collect()
    }

    /// Every client that is known by name, each once, with its digest.
    pub fn known_clients(&self) -> Vec<(u64, String)> {
        let mut known: HashMap<u64, &str> = HashMap::new();
        for (_, rule) in self.summarized_rules() {
            for summaries in rule.summaries.iter() {
                known.extend(summaries.denied.iter().flat_map(|of| of.counters()).map(|own| (own.key, &*own.name)));
                known.extend(summaries.consuming.iter().flat_map(|of| of.counters()).map(|own| (own.key, &*own.name)));
            }
        }
        known.extend(self.recent.all().map(|decision| (decision.key, &*decision.client)));
        known.into_iter().map(|(key, name)| (key, name.to_owned())).collect()
    }

    /// The last decisions.
    pub const fn recent(&self) -> &RecentDecisions {
        &self.recent
    }

    fn summarized_rules(&self) -> impl Iterator<Item = (RuleIndex, &RuleTraffic)> {
        self.summarized.iter().filter_map(|index| Some((*index, self.rules.get(index.0 as usize)?)))
    }
}
