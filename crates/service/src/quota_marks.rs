//! Marks of quotas: an event when the usage of a client reaches 80 %, 100 %, or a mark of the rule.
//!
//! A charge reports the usage after it and its own units, so the charge that crosses a mark knows it. Usage is the
//! shared store's, so in a fleet one node sees each crossing, once per period; a refund below a mark makes the next
//! crossing another event.

use std::collections::BTreeMap;
use std::fmt;

use parking_lot::Mutex;
use tollgate_core::Request;
use tollgate_engine::Decision;
use tollgate_telemetry::{MetricFamilies, MetricsPage};

use crate::violations::{KeyHashing, client_text};

/// Most series of the metric; crossings of further rules are logged and counted under `__other__`.
const SERIES_MAX: usize = 1000;

/// Notices crossings, logs and counts them.
#[derive(Debug)]
pub struct QuotaMarks {
    hashing: KeyHashing,
    counts: Mutex<BTreeMap<MarkLabels, u64>>,
}

/// Labels of the counter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MarkLabels {
    namespace: String,
    rule: String,
    percent: u32,
}

impl QuotaMarks {
    /// Names clients in the log as digests under `site_key`.
    pub fn new(site_key: &[u8]) -> QuotaMarks {
        QuotaMarks { hashing: KeyHashing::hashed(site_key), counts: Mutex::default() }
    }

    /// Reports every mark that the charges of a decision crossed. The next step of a reservation has no request: its
    /// client is not known.
    #[inline]
    pub(crate) fn decided(&self, requests: &[Request<'_>], decision: &Decision) {
        if decision.rules().has_quotas() {
            self.look(requests, decision);
        }
    }

    fn look(&self, requests: &[Request<'_>], decision: &Decision) {
        for ruling in decision.rulings() {
            let Some((rule, outcome)) = decision.rule(ruling).zip(ruling.outcome) else { continue };
            let Some(quota) = rule.spec.limit.as_ref().and_then(|limit| limit.quota.as_deref()) else { continue };
            for percent in &quota.marks {
                let mark = mark(outcome.limit, *percent);
                if outcome.used.saturating_sub(outcome.granted) < mark && mark <= outcome.used {
                    let request = requests.get(usize::from(ruling.request));
                    let client = request.map(|request| self.hashing.of(&client_text(request)));
                    let (namespace, rule) = (rule.namespace.as_str(), rule.name.as_str());
                    let (used, limit) = (outcome.used, outcome.limit);
                    tracing::info!(namespace, rule, client, percent, used, limit, "quota mark reached");
                    self.count(MarkLabels {
                        namespace: namespace.to_owned(),
                        rule: rule.to_owned(),
                        percent: *percent,
                    });
                }
            }
        }
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
        page.counters("tollgate_quota_marks", "Clients whose usage reached this percentage of a quota", series)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tollgate_core::{Attribute, ManualClock, Span, Time};
    use tollgate_engine::{Engine, rules_from_yaml};

    use super::*;
    use crate::observer::ServiceObserver;

    #[test]
    fn each_mark_is_an_event_once_per_period() {
        let marks = Arc::new(QuotaMarks::new(b"site"));
        let rules = "rules: [{ name: daily, key_by: user_id, quota: { amount: 10, every: day, marks: [50%, 100%] } }]";
        let clock = ManualClock::at(Time::from_secs(1_700_000_000));
        let observer = ServiceObserver::new(Arc::default(), None).with_quota_marks(marks.clone());
        let engine = Engine::on_clock(rules_from_yaml(rules).unwrap(), clock.clone()).with_observer(observer);
        let request = Request::new().with(Attribute::UserId, "1");
        let counts = || marks.counts.lock().iter().map(|(labels, count)| (labels.percent, *count)).collect::<Vec<_>>();
        for (used, expected) in [(4, vec![]), (5, vec![(50, 1)]), (9, vec![(50, 1)]), (10, vec![(50, 1), (100, 1)])] {
            while engine.decide_now(&request.cost(0)).remaining() > Some(10 - used) {
                assert!(engine.decide_now(&request).is_allowed());
            }
            assert_eq!(counts(), expected, "after {used}");
        }
        assert!(!engine.decide_now(&request).is_allowed());
        assert_eq!(counts(), [(50, 1), (100, 1)], "a refused charge reaches nothing");
        clock.advance(Span::from_secs(86_400));
        assert!(engine.decide_now(&request.cost(10)).is_allowed());
        assert_eq!(counts(), [(50, 2), (100, 2)], "one charge may reach several");
    }
}
