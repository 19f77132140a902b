//! Marks of quotas: an event when the usage of a client reaches 80 %, 100 %, or a mark of the rule.
//!
//! A charge reports the usage after it and its own units, so the charge that crosses a mark knows it. Charges of
//! extensions and of settlements above their estimate are looked at as well. Usage is the shared store's, so in a fleet
//! one node sees each crossing; usage that was settled lower may cross a mark again, which each node reports once per
//! period. What a node counts alone while the store is away is no usage of the quota, and reaches no mark.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::json;
use tollgate_core::{Charge, Digest, Request, Time};
use tollgate_engine::{DecidedBy, Decision, Settlement, UnitChange};
use tollgate_ruleset::Rule;
use tollgate_telemetry::{MetricFamilies, MetricsPage};

use crate::events::{EventKind, EventQueue, OperatorEvent};
use crate::reported_marks::{ReachedMark, ReportedMarks};
use crate::violations::{KeyHashing, client_text};

/// Most series of the metric; crossings of further rules are logged and counted under `__other__`.
const SERIES_MAX: usize = 1000;

/// Notices crossings, logs and counts them.
#[derive(Debug)]
pub struct QuotaMarks {
    /// How clients are named in the log: as operators see them elsewhere, once the key of the site is known.
    site: OnceLock<KeyHashing>,
    before: KeyHashing,
    counts: Mutex<BTreeMap<MarkLabels, u64>>,
    reported: Mutex<ReportedMarks>,
    events: Arc<EventQueue>,
}

/// Labels of the counter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MarkLabels {
    namespace: String,
    rule: String,
    percent: u32,
}

/// A charge that the store recorded on a quota.
struct RecordedCharge {
    bucket: Digest,
    /// The end of the period.
    end: Time,
    units: u64,
    /// Usage after it.
    used: u64,
    limit: u64,
}

impl QuotaMarks {
    /// Names clients in the log as digests under `key`, until [`name_clients`](QuotaMarks::name_clients) says how.
    pub fn new(key: &[u8]) -> QuotaMarks {
        QuotaMarks {
            site: OnceLock::new(),
            before: KeyHashing::hashed(key),
            counts: Mutex::default(),
            reported: Mutex::default(),
            events: Arc::default(),
        }
    }

    /// Also tells webhooks.
    pub fn with_events(self, events: Arc<EventQueue>) -> QuotaMarks {
        QuotaMarks { events, ..self }
    }

    /// Names clients as the admin API and the history of usage do, so that operators find them there.
    pub fn name_clients(&self, hashing: KeyHashing) {
        let _ = self.site.set(hashing); // the key of a site never changes
    }

    /// Reports every mark that the charges of a decision crossed. The next step of a reservation has no request: its
    /// client is not known.
    #[inline]
    pub(crate) fn decided(&self, requests: &[Request<'_>], decision: &Decision, charges: &[Charge]) {
        if decision.rules().has_quotas() {
            self.look(requests, decision, charges);
        }
    }

    fn look(&self, requests: &[Request<'_>], decision: &Decision, charges: &[Charge]) {
        for ruling in decision.rulings().iter().filter(|ruling| ruling.decided_by == DecidedBy::Store) {
            let Some((rule, outcome)) = decision.rule(ruling).zip(ruling.outcome) else { continue };
            let Some(charge) = ruling.charge().and_then(|index| charges.get(index)) else { continue };
            let (bucket, end, units) = (charge.bucket, outcome.stamp, outcome.granted);
            let recorded = RecordedCharge { bucket, end, units, used: outcome.used, limit: outcome.limit };
            let request = requests.get(usize::from(ruling.request));
            self.charged(rule, &recorded, || request.map(client_text));
        }
    }

    /// Reports the marks that a settlement above its estimate crossed. Its client is not known.
    pub(crate) fn settled(&self, settlement: &Settlement) {
        if settlement.local {
            return;
        }
        for correction in &settlement.corrections {
            let (UnitChange::Charged(units), Some(after)) = (correction.change, correction.after) else { continue };
            let Some(rule) = settlement.rule(correction) else { continue };
            let (bucket, end) = (correction.read.bucket, correction.stamp);
            self.charged(rule, &RecordedCharge { bucket, end, units, used: after.used, limit: after.limit }, || None);
        }
    }

    fn charged(&self, rule: &Rule, charge: &RecordedCharge, client: impl Fn() -> Option<String>) {
        let Some(quota) = rule.spec.limit.as_ref().and_then(|limit| limit.quota.as_deref()) else { return };
        let RecordedCharge { bucket, end, units, used, limit } = *charge;
        for percent in &quota.marks {
            let (percent, mark) = (*percent, mark(limit, *percent));
            let is_crossed = used.saturating_sub(units) < mark && mark <= used;
            let reached = ReachedMark { end, bucket, percent, units: mark };
            if !is_crossed || !self.reported.lock().is_first(reached) {
                continue;
            }
            let (namespace, rule, client) = (rule.namespace.as_str(), rule.name.as_str(), client());
            let hashed = client.as_ref().map(|client| self.hashed(client));
            tracing::info!(namespace, rule, client = hashed, percent, used, limit, "quota mark reached");
            self.events.push(|| OperatorEvent {
                namespace: Some(namespace.to_owned()),
                rule: Some(rule.to_owned()),
                client,
                occasion: format!("{:016x}{:016x} {} {percent} {mark}", bucket.0[0], bucket.0[1], end.nanos()),
                summary: format!("{percent} % of the quota {rule} are used: {used} of {limit}."),
                data: json!({ "percent": percent, "used": used, "limit": limit }),
                ..OperatorEvent::of(EventKind::QuotaMark)
            });
            self.count(MarkLabels { namespace: namespace.to_owned(), rule: rule.to_owned(), percent });
        }
    }

    fn hashed(&self, client: &str) -> String {
        self.site.get().unwrap_or(&self.before).of(client)
    }

    fn count(&self, labels: MarkLabels) {
        let mut counts = self.counts.lock();
        let is_full = counts.len() >= SERIES_MAX && !counts.contains_key(&labels);
        let other = || MarkLabels { namespace: "__other__".to_owned(), rule: "__other__".to_owned(), percent: 0 };
        *counts.entry(if is_full { other() } else { labels }).or_default() += 1;
    }
}

/// The first usage that reaches `percent` of the limit.
fn mark(limit: u64, percent: u32) -> u64 {
    let exact = (u128::from(limit) * u128::from(percent)).div_ceil(100);
    u64::try_from(exact).unwrap_or(u64::MAX).max(1)
}

impl MetricFamilies for QuotaMarks {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let counts = self.counts.lock().clone();
        let series = counts.into_iter().map(|(MarkLabels { namespace, rule, percent }, count)| {
            ([("namespace", namespace), ("rule", rule), ("percent", percent.to_string())], count)
        });
        page.counters("tollgate_quota_marks", "Clients whose usage reached this percentage of a quota", series)?;
        let remembered = self.reported.lock().len() as u64;
        page.gauge("tollgate_quota_marks_remembered", "Marks that are not reported again in their period", remembered)
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Attribute, ManualClock, Secret, Span};
    use tollgate_engine::{Engine, Extension, Reservation};
    use tollgate_ruleset::{CompileOptions, RuleSet};
    use tollgate_store::Memory;

    use super::*;
    use crate::observer::ServiceObserver;

    const DAY: Span = Span::from_secs(86_400);

    /// A node with one quota of 10 a day.
    struct MarkedNode {
        marks: Arc<QuotaMarks>,
        engine: Engine<Memory>,
        clock: ManualClock,
    }

    impl MarkedNode {
        fn new() -> MarkedNode {
            let marks = Arc::new(QuotaMarks::new(b"site"));
            let clock = ManualClock::at(Time::from_secs(1_700_000_000));
            let observer = ServiceObserver::new(Arc::default(), None).with_quota_marks(marks.clone());
            let engine = Engine::on_clock(rules(10), clock.clone()).with_observer(observer);
            MarkedNode { marks, engine, clock }
        }

        fn request(&self) -> Request<'static> {
            Request::new().with(Attribute::UserId, "1")
        }

        async fn reserve(&self, cost: u64) -> Reservation {
            self.engine.reserve(&self.request().cost(cost)).await.1.unwrap()
        }

        /// Percentages and how often each was reported.
        fn counts(&self) -> Vec<(u32, u64)> {
            self.marks.counts.lock().iter().map(|(labels, count)| (labels.percent, *count)).collect()
        }
    }

    fn rules(amount: u64) -> RuleSet {
        let quota = format!("{{ amount: {amount}, every: day, marks: [50%, 100%] }}");
        let text = format!("rules: [{{ name: daily, key_by: user_id, quota: {quota} }}]");
        let options = CompileOptions { secret: Secret::new([7; 16]), seed: 1 };
        RuleSet::compile(&[tollgate_rules::read("rules", &text).unwrap()], &options).unwrap()
    }

    #[test]
    fn each_mark_is_an_event_once_per_period() {
        let node = MarkedNode::new();
        for (used, expected) in [(4, vec![]), (5, vec![(50, 1)]), (9, vec![(50, 1)]), (10, vec![(50, 1), (100, 1)])] {
            while node.engine.decide_now(&node.request().cost(0)).remaining() > Some(10 - used) {
                assert!(node.engine.decide_now(&node.request()).is_allowed());
            }
            assert_eq!(node.counts(), expected, "after {used}");
        }
        assert!(!node.engine.decide_now(&node.request()).is_allowed());
        assert_eq!(node.counts(), [(50, 1), (100, 1)], "a refused charge reaches nothing");
        node.clock.advance(DAY);
        assert!(node.engine.decide_now(&node.request().cost(10)).is_allowed());
        assert_eq!(node.counts(), [(50, 2), (100, 2)], "one charge may reach several");
    }

    #[tokio::test]
    async fn usage_that_falls_below_a_mark_and_rises_again_is_no_second_event() {
        let node = MarkedNode::new();
        for _ in 0..3 {
            let reservation = node.reserve(10).await;
            assert_eq!(node.counts(), [(50, 1), (100, 1)]);
            node.engine.settle(reservation, 0).await.unwrap();
        }
        node.clock.advance(DAY);
        node.engine.settle(node.reserve(6).await, 0).await.unwrap();
        assert_eq!(node.counts(), [(50, 2), (100, 1)]);
    }

    #[tokio::test]
    async fn settlements_above_their_estimate_and_extensions_reach_marks() {
        let node = MarkedNode::new();
        let reservation = node.reserve(1).await;
        node.engine.settle(reservation, 7).await.unwrap();
        assert_eq!(node.counts(), [(50, 1)], "settled from 1 to 7");
        let extension = node.engine.extend(node.reserve(1).await, &[(Request::REQUESTS, 2)]).await.unwrap();
        assert!(matches!(extension, Extension::Granted(..)));
        assert_eq!(node.counts(), [(50, 1), (100, 1)], "extended from 8 to 10");
    }

    #[test]
    fn clients_are_named_as_the_site_names_them_once_it_is_known() {
        let marks = QuotaMarks::new(b"this process");
        assert_eq!(marks.hashed("user:1"), KeyHashing::hashed(b"this process").of("user:1"));
        marks.name_clients(KeyHashing::hashed(b"the site"));
        assert_eq!(marks.hashed("user:1"), KeyHashing::hashed(b"the site").of("user:1"));
    }

    #[test]
    fn a_percentage_of_another_amount_is_another_mark() {
        let node = MarkedNode::new();
        assert!(node.engine.decide_now(&node.request().cost(6)).is_allowed());
        node.engine.swap_rules(rules(20));
        assert!(node.engine.decide_now(&node.request().cost(5)).is_allowed());
        assert_eq!(node.counts(), [(50, 2)], "at 5 of 10, and at 10 of 20");
    }
}
