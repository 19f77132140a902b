//! Everything that is counted, and how to count it. Reading it is the business of a [`Scrape`](super::Scrape).

use std::fmt;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use tollgate_core::{Purpose, Request, Span};
use tollgate_engine::{DecidedBy, Decision, Generation, Ruling, Verdict};
use tollgate_rules::ruleset::RuleSet;

use crate::counter::Counter;
use crate::latency::Latency;
use crate::page::{MetricFamilies, MetricsPage};
use crate::series::{Book, Kind, Labels, Slot, Table};

/// The counts of one server.
#[derive(Debug)]
pub struct DecisionMetrics {
    book: Book,
    table: ArcSwap<Table>,
    /// Held by whoever makes the next table; others do not wait for it.
    adopting: Mutex<()>,
    invalid: Counter,
    store_failures: Counter,
    fallback: [Counter; Policy::ALL.len()],
    latency: Latency,
}

/// What decided while the store was away: the policy of the strictest rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Allow,
    Deny,
    Local,
}

impl Policy {
    const ALL: [Policy; 3] = [Policy::Allow, Policy::Deny, Policy::Local];

    const fn name(self) -> &'static str {
        match self {
            Policy::Allow => "allow",
            Policy::Deny => "deny",
            Policy::Local => "local",
        }
    }

    const fn of(mode: DecidedBy) -> Option<Policy> {
        match mode {
            DecidedBy::Open => Some(Policy::Allow),
            DecidedBy::Closed => Some(Policy::Deny),
            DecidedBy::Fallback => Some(Policy::Local),
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
        let book = Book::default();
        let table = Table::new(0, &RuleSet::empty(), &book);
        DecisionMetrics {
            book,
            table: ArcSwap::from_pointee(table),
            adopting: Mutex::default(),
            invalid: Counter::default(),
            store_failures: Counter::default(),
            fallback: Policy::ALL.map(|_| Counter::default()),
            latency: Latency::default(),
        }
    }
}

impl DecisionMetrics {
    /// Gets ready to count for a generation. Worth calling after every swap; otherwise its first decision does it.
    pub fn adopt(&self, generation: &Generation) {
        self.make_table(generation.number, &generation.rules);
    }

    /// Notes how long it took to answer.
    #[inline]
    pub fn observe_latency(&self, span: Span) {
        self.latency.observe(span);
    }

    /// Counts a call that the store did not answer.
    pub fn store_failed(&self) {
        self.store_failures.add_one();
    }

    /// Counts the requests of one decision, each once: at the rule that decided. Requests that only ask are left out.
    #[inline]
    pub fn decided(&self, requests: &[Request<'_>], decision: &Decision) {
        let kind = match decision.verdict {
            Verdict::Allow => Kind::Allowed,
            Verdict::Deny => Kind::Denied,
            Verdict::Invalid(_) => return requests.iter().for_each(|_| self.invalid.add_one()),
        };
        if let Some(policy) = Policy::of(decision.decided_by) {
            self.fell_back(policy, requests);
        }
        let mut table = self.table.load();
        if table.generation < decision.generation() {
            self.make_table(decision.generation(), decision.rules());
            table = self.table.load();
        }
        if table.generation != decision.generation() {
            return self.decided_elsewhere(&table, kind, requests, decision);
        }
        let deciding = decision.deciding().and_then(|ruling| table.rule(ruling.rule));
        for request in requests.iter().filter(|request| is_counted(request)) {
            let slot = deciding.unwrap_or_else(|| table.undecided(request.namespace));
            let tier = table.tier(decision.rules().tier_of(request));
            table.count(&self.book, slot, kind, tier, decision.decided_by);
        }
        for ruling in refused_in_shadow(requests, decision) {
            if let Some(slot) = table.rule(ruling.rule) {
                slot.count_shadow(&self.book);
            }
        }
    }

    #[cold]
    fn fell_back(&self, policy: Policy, requests: &[Request<'_>]) {
        if let Some(counter) = self.fallback.get(policy as usize) {
            requests.iter().filter(|request| is_counted(request)).for_each(|_| counter.add_one());
        }
    }

    /// A decision of a generation that is no longer the present one, or not yet.
    #[cold]
    fn decided_elsewhere(&self, table: &Table, kind: Kind, requests: &[Request<'_>], decision: &Decision) {
        let (book, mode) = (&self.book, decision.decided_by);
        for request in requests.iter().filter(|request| is_counted(request)) {
            let tier = table.tier(decision.rules().tier_of(request));
            match decision.deciding_rule() {
                Some((rule, _)) => table.count_foreign(book, rule, kind, tier, mode),
                None => table.count(book, table.undecided(request.namespace), kind, tier, mode),
            }
        }
        let shadows = refused_in_shadow(requests, decision).filter_map(|ruling| decision.rule(ruling));
        shadows.for_each(|rule| Slot::of(rule).count_shadow(book));
    }

    #[cold]
    fn make_table(&self, number: u64, rules: &RuleSet) {
        let Some(_guard) = self.adopting.try_lock() else { return };
        if self.table.load().generation < number {
            self.table.store(Table::new(number, rules, &self.book).into());
        }
    }
}

impl MetricFamilies for DecisionMetrics {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        self.write_requests(page)?;
        let help = "Time from a request to its decision";
        page.histogram("tollgate_decision_seconds", help, &self.latency.snapshot())?;
        page.counter("tollgate_store_failures", "Times the store did not answer", self.store_failures.sum())?;
        let policies = Policy::ALL.iter().zip(&self.fallback);
        let policies = policies.map(|(policy, counter)| ([("policy", policy.name())], counter.sum()));
        page.counters("tollgate_fallback_decisions", "Decisions made by policy, without the store", policies)?;
        let table = self.table.load();
        page.gauge("tollgate_generation", "Generation of the rules in force", table.generation)?;
        page.gauge("tollgate_rules", "Rules in force", table.rules.len())
    }
}

impl DecisionMetrics {
    fn write_requests(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let series = self.book.read();
        let of = |kind| series.iter().filter(move |(labels, _)| labels.kind == kind);
        let by_rule = |(labels, count): &(Labels, u64)| (RuleLabels(labels.clone()), *count);
        let help = "Requests allowed, at the rule that decided";
        page.counters("tollgate_requests_allowed", help, of(Kind::Allowed).map(by_rule))?;
        let help = "Requests denied, at the rule that decided";
        page.counters("tollgate_requests_denied", help, of(Kind::Denied).map(by_rule))?;
        page.counter("tollgate_requests_invalid", "Requests that could not be read", self.invalid.sum())?;
        let help = "Requests that a shadow rule would have denied";
        page.counters("tollgate_shadow_denied", help, of(Kind::ShadowDenied).map(by_rule))
    }
}

/// The labels of a count by rule.
struct RuleLabels(Labels);

impl EncodeLabelSet for RuleLabels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        let Labels { namespace, rule, tier, mode, .. } = &self.0;
        [("namespace", &**namespace), ("rule", &**rule)].encode(encoder)?;
        match mode.map(DecidedBy::name) {
            Some(mode) => [("tier", &**tier), ("mode", mode)].encode(encoder),
            None => Ok(()),
        }
    }
}

/// Requests that only ask charge nothing and stop nobody; those that are only mentioned ask nothing.
fn is_counted(request: &Request<'_>) -> bool {
    !matches!(request.purpose, Purpose::Peek | Purpose::Mention)
}

/// What shadow rules would have refused, of requests that count.
fn refused_in_shadow<'a>(requests: &'a [Request<'_>], decision: &'a Decision) -> impl Iterator<Item = &'a Ruling> {
    let refused = decision.rulings().iter().filter(|ruling| !ruling.enforced && ruling.refused());
    refused.filter(|ruling| requests.get(usize::from(ruling.request)).is_some_and(is_counted))
}
