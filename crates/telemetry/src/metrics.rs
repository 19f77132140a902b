//! Counts of decisions. A [`Scrape`](super::Scrape) reads them.

use std::fmt;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use tollgate_core::{Purpose, Request, Span};
use tollgate_engine::{DecidedBy, Decision, Generation, Ruling, Verdict};
use tollgate_ruleset::RuleSet;

use crate::counter::Counter;
use crate::latency::StripedHistogram;
use crate::page::{MetricFamilies, MetricsPage};
use crate::series::{GenerationSeries, SeriesKind, SeriesLabels, SeriesRegistry};

/// Decision counts of one server.
#[derive(Debug)]
pub struct DecisionMetrics {
    registry: SeriesRegistry,
    current: ArcSwap<GenerationSeries>,
    /// Held while the series of a new generation are made; other threads do not wait for it.
    adopting: Mutex<()>,
    invalid: Counter,
    store_failures: Counter,
    /// Requests denied, by whichever rule.
    denials: Counter,
    /// Steps of reservations: granted, and denied.
    extensions: [Counter; 2],
    fallback: [Counter; FallbackPolicy::ALL.len()],
    latency: StripedHistogram,
}

/// What decided while the store was away: the policy of the strictest rule. A label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FallbackPolicy {
    Allow,
    Deny,
    Local,
}

impl FallbackPolicy {
    const ALL: [FallbackPolicy; 3] = [FallbackPolicy::Allow, FallbackPolicy::Deny, FallbackPolicy::Local];

    const fn name(self) -> &'static str {
        match self {
            FallbackPolicy::Allow => "allow",
            FallbackPolicy::Deny => "deny",
            FallbackPolicy::Local => "local",
        }
    }

    const fn of(mode: DecidedBy) -> Option<FallbackPolicy> {
        match mode {
            DecidedBy::Open => Some(FallbackPolicy::Allow),
            DecidedBy::Closed => Some(FallbackPolicy::Deny),
            DecidedBy::Fallback => Some(FallbackPolicy::Local),
            DecidedBy::Store
            | DecidedBy::Lease
            | DecidedBy::Async
            | DecidedBy::Local
            | DecidedBy::Overflow
            | DecidedBy::Off => None,
        }
    }
}

impl Default for DecisionMetrics {
    fn default() -> DecisionMetrics {
        let registry = SeriesRegistry::default();
        let current = GenerationSeries::new(0, &RuleSet::empty(), &registry);
        DecisionMetrics {
            registry,
            current: ArcSwap::from_pointee(current),
            adopting: Mutex::default(),
            invalid: Counter::default(),
            store_failures: Counter::default(),
            denials: Counter::default(),
            extensions: [Counter::default(), Counter::default()],
            fallback: FallbackPolicy::ALL.map(|_| Counter::default()),
            latency: StripedHistogram::default(),
        }
    }
}

impl DecisionMetrics {
    /// Prepares counting for a generation. Called after every swap; otherwise its first decision does it.
    pub fn adopt(&self, generation: &Generation) {
        self.adopt_generation(generation.number, &generation.rules);
    }

    /// Records the latency of a decision.
    #[inline]
    pub fn observe_latency(&self, span: Span) {
        self.latency.observe(span);
    }

    /// Decisions so far, invalid requests included.
    pub fn decisions(&self) -> u64 {
        self.latency.snapshot().count
    }

    /// Requests denied so far.
    pub fn denials(&self) -> u64 {
        self.denials.sum()
    }

    /// Decisions made by policy so far, because the store was away.
    pub fn fallbacks(&self) -> u64 {
        self.fallback.iter().map(Counter::sum).sum()
    }

    /// Counts a step of a reservation. It is not a request, so it is not among those allowed and denied.
    pub fn extended(&self, decision: &Decision) {
        let [granted, denied] = &self.extensions;
        if decision.is_allowed() { granted.add_one() } else { denied.add_one() }
    }

    /// Counts a call that the store did not answer.
    pub fn store_failed(&self) {
        self.store_failures.add_one();
    }

    /// Counts the requests of one decision, each once, at the deciding rule. Peeks are not counted.
    #[inline]
    pub fn decided(&self, requests: &[Request<'_>], decision: &Decision) {
        let kind = match decision.verdict {
            Verdict::Allow => SeriesKind::Allowed,
            Verdict::Deny => SeriesKind::Denied,
            Verdict::Invalid(_) => return requests.iter().for_each(|_| self.invalid.add_one()),
        };
        if let Some(policy) = FallbackPolicy::of(decision.decided_by) {
            self.count_fallback(policy, requests);
        }
        let mut current = self.current.load();
        if current.generation < decision.generation() {
            self.adopt_generation(decision.generation(), decision.rules());
            current = self.current.load();
        }
        if current.generation != decision.generation() {
            return self.count_other_generation(&current, kind, requests, decision);
        }
        let deciding = decision.deciding().and_then(|ruling| current.rule(ruling.rule));
        for request in requests.iter().filter(|request| is_counted(request)) {
            let series = deciding.unwrap_or_else(|| current.undecided(request.namespace));
            let tier = current.tier(decision.rules().tier_of(request));
            current.count(&self.registry, series, kind, tier, decision.decided_by);
            if kind == SeriesKind::Denied {
                self.denials.add_one();
            }
        }
        for (ruling, request) in shadow_denials(requests, decision) {
            if let Some(series) = current.rule(ruling.rule) {
                let tier = current.tier(decision.rules().tier_of(request));
                current.count(&self.registry, series, SeriesKind::ShadowDenied, tier, ruling.decided_by);
            }
        }
    }

    #[cold]
    fn count_fallback(&self, policy: FallbackPolicy, requests: &[Request<'_>]) {
        if let Some(counter) = self.fallback.get(policy as usize) {
            requests.iter().filter(|request| is_counted(request)).for_each(|_| counter.add_one());
        }
    }

    /// Counts a decision of another generation than the current one.
    #[cold]
    fn count_other_generation(
        &self,
        current: &GenerationSeries,
        kind: SeriesKind,
        requests: &[Request<'_>],
        decision: &Decision,
    ) {
        let (registry, mode) = (&self.registry, decision.decided_by);
        for request in requests.iter().filter(|request| is_counted(request)) {
            let tier = current.tier(decision.rules().tier_of(request));
            match decision.deciding_rule() {
                Some((rule, _)) => current.count_by_name(registry, rule, kind, tier, mode),
                None => current.count(registry, current.undecided(request.namespace), kind, tier, mode),
            }
        }
        for (ruling, request) in shadow_denials(requests, decision) {
            let Some(rule) = decision.rule(ruling) else { continue };
            let tier = current.tier(decision.rules().tier_of(request));
            current.count_by_name(registry, rule, SeriesKind::ShadowDenied, tier, ruling.decided_by);
        }
    }

    #[cold]
    fn adopt_generation(&self, number: u64, rules: &RuleSet) {
        let Some(_guard) = self.adopting.try_lock() else { return };
        if self.current.load().generation < number {
            self.current.store(GenerationSeries::new(number, rules, &self.registry).into());
        }
    }
}

impl MetricFamilies for DecisionMetrics {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        self.write_requests(page)?;
        let help = "Time from a request to its decision";
        page.histogram("tollgate_decision_seconds", help, &self.latency.snapshot())?;
        page.counter("tollgate_store_failures", "Times the store did not answer", self.store_failures.sum())?;
        let extensions = ["granted", "denied"].into_iter().zip(&self.extensions);
        let extensions = extensions.map(|(outcome, counter)| ([("outcome", outcome)], counter.sum()));
        page.counters("tollgate_extensions", "Further amounts that streams asked for", extensions)?;
        let policies = FallbackPolicy::ALL.iter().zip(&self.fallback);
        let policies = policies.map(|(policy, counter)| ([("policy", policy.name())], counter.sum()));
        page.counters("tollgate_fallback_decisions", "Decisions made by policy, without the store", policies)?;
        let current = self.current.load();
        page.gauge("tollgate_generation", "Generation of the rules in force", current.generation)?;
        page.gauge("tollgate_rules", "Rules in force", current.rules.len())
    }
}

impl DecisionMetrics {
    fn write_requests(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let series = self.registry.read();
        let of = |kind| series.iter().filter(move |(labels, _)| labels.kind == kind);
        let by_rule = |(labels, count): &(SeriesLabels, u64)| (RuleLabels(labels.clone()), *count);
        let help = "Requests allowed, at the rule that decided";
        page.counters("tollgate_requests_allowed", help, of(SeriesKind::Allowed).map(by_rule))?;
        let help = "Requests denied, at the rule that decided";
        page.counters("tollgate_requests_denied", help, of(SeriesKind::Denied).map(by_rule))?;
        page.counter("tollgate_requests_invalid", "Requests that could not be read", self.invalid.sum())?;
        let help = "Requests that a shadow rule would have denied";
        page.counters("tollgate_shadow_denied", help, of(SeriesKind::ShadowDenied).map(by_rule))
    }
}

/// The labels of a count by rule.
struct RuleLabels(SeriesLabels);

impl EncodeLabelSet for RuleLabels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        let SeriesLabels { namespace, rule, tier, mode, .. } = &self.0;
        [("namespace", &**namespace), ("rule", &**rule)].encode(encoder)?;
        [("tier", &**tier), ("mode", mode.name())].encode(encoder)
    }
}

/// Peeks and mentions charge nothing and are not counted.
fn is_counted(request: &Request<'_>) -> bool {
    !matches!(request.purpose, Purpose::Peek | Purpose::Mention)
}

/// Rulings of shadow rules that would have denied counted requests, with these.
fn shadow_denials<'a, 'r>(
    requests: &'a [Request<'r>],
    decision: &'a Decision,
) -> impl Iterator<Item = (&'a Ruling, &'a Request<'r>)> {
    let refused = decision.rulings().iter().filter(|ruling| !ruling.enforced && ruling.refused());
    let asked = refused.filter_map(|ruling| Some((ruling, requests.get(usize::from(ruling.request))?)));
    asked.filter(|(_, request)| is_counted(request))
}
