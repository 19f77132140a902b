//! Expectations about the answers during a fault.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate_testkit::checker::{AdmissionMode, ClientObservation};

use crate::faults::Lab;

const MILLI: u64 = 1_000_000;
/// A breaker opens within this time (P15), with a margin for a busy machine.
const NOTICED: u64 = 300 * MILLI;
/// The longest decision (P15), with a margin for the network. On a busy machine caller and node are late as well, as
/// much as the timers of this process.
const DECISION_MS: f64 = 60.0;

/// A recovered store decides again after the longest pause between two attempts (5 s), a successful one, and the ramp-up of
/// the breaker.
const BACK: Duration = Duration::from_secs(12);

impl Lab {
    /// Observations of requests that were sent and answered between two times.
    pub fn between(&self, from: u64, to: u64) -> impl Iterator<Item = &ClientObservation> {
        self.observations.iter().filter(move |observation| observation.asked >= from && observation.heard <= to)
    }

    /// The number of answers per mode between two times.
    pub fn modes(&self, from: u64, to: u64) -> BTreeMap<Option<AdmissionMode>, u64> {
        let mut modes = BTreeMap::new();
        self.between(from, to).for_each(|observation| *modes.entry(observation.mode).or_default() += 1);
        modes
    }

    /// The percentage of answers by the store or by a lease between two times.
    pub fn store_share(&self, from: u64, to: u64) -> u64 {
        let modes = self.modes(from, to);
        let of = |mode: AdmissionMode| modes.get(&Some(mode)).copied().unwrap_or(0);
        (of(AdmissionMode::Store) + of(AdmissionMode::Lease)) * 100 / modes.values().sum::<u64>().max(1)
    }

    /// A quantile of the latency, in milliseconds.
    pub fn latency(&self, from: u64, to: u64, quantile: f64) -> f64 {
        let mut took: Vec<u64> =
            self.between(from, to).map(|observation| observation.heard - observation.asked).collect();
        took.sort_unstable();
        let place = (took.len() as f64 * quantile) as usize;
        took.get(place.min(took.len().saturating_sub(1))).map_or(0.0, |nanos| *nanos as f64 / MILLI as f64)
    }

    /// Between these times the store was unavailable, and every request was answered by policy in time.
    pub fn expect_outage(&mut self, from: u64, to: u64) {
        let first = self
            .between(from, to)
            .filter(|observation| is_by_policy(observation))
            .map(|observation| observation.heard)
            .min();
        let first = first.map(|at| (at - from) / MILLI);
        self.expect(first.is_some(), || "no request was answered by policy".to_owned());
        let after = self.modes(from + NOTICED, to);
        let asked = after.get(&Some(AdmissionMode::Store)).copied().unwrap_or(0);
        self.expect(asked == 0, || format!("{asked} answers of a store that is unavailable: {after:?}"));
        self.expect_timely(from, to);
        self.remark(format!("first answer by policy after {} ms", first.unwrap_or(0)));
    }

    /// Between these times every request was answered.
    pub fn expect_answers(&mut self, from: u64, to: u64) {
        let unanswered = self.between(from, to).filter(|observation| observation.mode.is_none()).count();
        self.expect(unanswered == 0, || format!("{unanswered} requests without an answer"));
    }

    /// Between these times every request was answered in time.
    pub fn expect_timely(&mut self, from: u64, to: u64) {
        self.expect_answers(from, to);
        let (p99, most) = (self.latency(from, to, 0.99), self.latency(from, to, 1.0));
        let stall = self.stalls.quantile(from, to, 0.99);
        let allowed = DECISION_MS + 2.0 * stall;
        self.expect(p99 <= allowed, || format!("p99 of decisions {p99:.1} ms; timers {stall:.1} ms late"));
        let late = self
            .between(from, to)
            .filter(|observation| (observation.heard - observation.asked) as f64 > DECISION_MS * 1e6)
            .count();
        self.remark(format!("decisions p99 {p99:.1} ms, longest {most:.1} ms, {late} above {DECISION_MS} ms"));
    }

    /// The store is available again: waits until it decides, and remarks how long that took.
    pub fn expect_return(&mut self) {
        if let Some(took) = self.wait_for_store(BACK) {
            self.remark(format!("store decides again after {} ms", took.as_millis()));
        }
    }

    /// Errors of the store are counted, by class.
    pub fn expect_errors(&mut self) {
        let classes: BTreeMap<String, u64> = self.nodes[0].metric_by_label("tollgate_redis_errors", "error");
        self.expect(!classes.is_empty(), || "no error is counted".to_owned());
        self.remark(format!("errors {classes:?}"));
    }

    /// A metric reaches at least this value in time.
    pub fn expect_metric(&mut self, name: &str, least: u64, within: Duration) {
        let reached = crate::patience::try_until(within, || self.metric(name) >= least);
        self.expect(reached.is_some(), || format!("{name} stays below {least} for {within:?}"));
    }

    /// Hints are true (P10): a refused caller that waits as long as told is admitted.
    pub fn expect_truthful_hints(&mut self) {
        let mut told = Vec::new();
        for rule in self.rules.clone() {
            let refused = (0..500).find_map(|_| self.ask(0, rule.name, "truth").get("retry_after_ms")?.as_u64());
            self.expect(refused.is_some(), || format!("rule {} never refuses", rule.name));
            told.extend(refused.map(|wait| (self.now() + (wait + 5) * MILLI, wait, rule.name)));
        }
        told.sort_unstable();
        for (due, wait, rule) in told {
            self.pause(due.saturating_sub(self.now()).div_ceil(MILLI));
            let answer = self.ask(0, rule, "truth");
            let allowed = answer.get("allowed").and_then(serde_json::Value::as_bool) == Some(true);
            self.expect(allowed, || format!("rule {rule}: refused after {wait} ms, as told: {answer}"));
        }
    }
}

fn is_by_policy(observation: &ClientObservation) -> bool {
    matches!(observation.mode, Some(AdmissionMode::Fallback | AdmissionMode::Open | AdmissionMode::Closed))
}
