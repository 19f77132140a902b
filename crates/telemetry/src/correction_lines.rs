//! Lines of the decision log about amounts that change after a decision: settlements, and charges without an answer.
//!
//! Together with the charges of decisions they are enough to sum up what every bucket of a quota was charged in every
//! period, to the unit, or between two bounds where a store did not answer.

use tollgate_core::{Charge, Limit, Quota, Time};
use tollgate_engine::{Settlement, UnitChange};

use super::escape::json_string;
use super::json_fields::{hex, number};

/// Appends the bucket and the end of the period, if the charge is on a quota.
pub(crate) fn write_period(line: &mut String, charge: &Charge, end: Time) {
    if let Limit::Quota(_) = charge.limit {
        line.push_str(",\"bucket\":");
        hex(line, charge.bucket);
        match end {
            Quota::FOREVER => line.push_str(",\"period_end_ns\":null"),
            end => number(line, ",\"period_end_ns\":", end.nanos()),
        }
    }
}

/// The rest of a line about a settlement.
pub(crate) fn write_settlement(line: &mut String, settlement: &Settlement) {
    line.push_str(",\"settlement\":");
    match settlement.number {
        Some(number) => line.push_str(&format!("\"{number:016x}\"")),
        None => line.push_str("null"),
    }
    line.push_str(if settlement.local { ",\"mode\":\"fallback\"" } else { ",\"mode\":\"store\"" });
    number(line, ",\"time_ns\":", settlement.now.nanos());
    line.push_str(",\"corrections\":[");
    for (index, correction) in settlement.corrections.iter().enumerate() {
        line.push_str(if index == 0 { "{\"namespace\":" } else { ",{\"namespace\":" });
        let rule = settlement.rule(correction);
        json_string(line, rule.map_or("", |rule| &rule.namespace));
        line.push_str(",\"rule\":");
        json_string(line, rule.map_or("", |rule| &rule.name));
        match correction.change {
            UnitChange::Refunded(units) => number(line, ",\"refunded\":", units),
            UnitChange::Charged(units) => number(line, ",\"charged\":", units),
        }
        write_period(line, &correction.read, correction.stamp);
        line.push_str(if correction.is_certain { "}" } else { ",\"certain\":false}" });
    }
    line.push_str("]}\n");
}

/// The rest of a line about charges that the store may have recorded. False if none of them is on a quota.
pub(crate) fn write_unanswered(line: &mut String, charges: &[Charge]) -> bool {
    line.push_str(",\"unanswered\":[");
    let mut between = "{\"units\":";
    for charge in charges.iter().filter(|charge| charge.ask.writes()) {
        let Limit::Quota(quota) = &charge.limit else { continue };
        number(line, between, charge.ask.cost());
        write_period(line, charge, quota.end());
        line.push('}');
        between = ",{\"units\":";
    }
    line.push_str("]}\n");
    between.starts_with(',')
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate_core::{Attribute, Enforcement, ManualClock, Request, Secret, Span};
    use tollgate_engine::{Decision, Engine, Observer, Reservation};
    use tollgate_rules::read;
    use tollgate_ruleset::{CompileOptions, RuleSet};
    use tollgate_store::{Memory, Outcomes, Store, StoreError, StoreErrorKind, Taken};

    use super::*;
    use crate::decision_log::{DecisionLog, DecisionLogConfig, LoggedKeys};
    use crate::lines::{Lines, Sink};

    const RULES: &str = "rules:
  - { name: daily, key_by: api_key, quota: { amount: 100, every: day } }
  - { name: ever, key_by: api_key, quota: { amount: 100, every: never } }
  - { name: rate, key_by: api_key, limit: { requests: 100, window: 1m, algorithm: fixed_window } }
";

    struct CorrectionLog(DecisionLog);

    impl Observer for CorrectionLog {
        fn decided(&self, requests: &[Request<'_>], decision: &Decision, charges: &[Charge]) {
            self.0.record(requests, decision, charges);
        }

        fn settled(&self, settlement: &Settlement) {
            self.0.record_settlement(settlement);
        }

        fn store_failed(&self, _: &StoreError, charges: &[Charge], wall: Time) {
            self.0.record_unanswered(charges, wall);
        }
    }

    fn rules() -> RuleSet {
        let options = CompileOptions { secret: Secret::new([7; 16]), seed: 1 };
        RuleSet::compile(&[read("rules", RULES).unwrap()], &options).unwrap()
    }

    fn log() -> (tempfile::TempDir, Lines, CorrectionLog) {
        let dir = tempfile::tempdir().unwrap();
        let lines = Lines::start(Sink::File(dir.path().join("decisions"))).unwrap();
        let config = DecisionLogConfig { node: "n".to_owned(), keys: LoggedKeys::Digest, secret: Secret::new([7; 16]) };
        let log = CorrectionLog(DecisionLog::new(config, lines.clone()));
        (dir, lines, log)
    }

    /// The lines without the digests of buckets, which are replaced by `b1`, `b2`, … in order.
    fn written(dir: &tempfile::TempDir, lines: &Lines) -> Vec<String> {
        assert!(lines.flush(Duration::from_secs(10)));
        let mut text = std::fs::read_to_string(dir.path().join("decisions")).unwrap();
        let mut buckets: Vec<String> = Vec::new();
        while let Some((_, rest)) = text.split_once("\"bucket\":\"").filter(|(_, rest)| rest.len() > 32) {
            let digest = rest.split('"').next().unwrap().to_owned();
            assert_eq!(digest.len(), 32, "{digest}");
            buckets.push(digest.clone());
            text = text.replace(&format!("\"bucket\":\"{digest}\""), &format!("\"bucket\":b{}", buckets.len()));
        }
        text.lines().map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn charges_and_settlements_name_bucket_and_period_of_quotas() {
        let (dir, lines, log) = log();
        let clock = ManualClock::at(Time::from_nanos(1_800_000_000_123_456_789));
        let engine = Engine::on_clock(rules(), clock.clone()).with_observer(log);
        let request = Request::new().with(Attribute::ApiKey, "k");
        let reserve = async |cost: u64| -> Reservation { engine.reserve(&request.cost(cost)).await.1.unwrap() };
        let (low, high, same) = (reserve(10).await, reserve(10).await, reserve(10).await);
        clock.advance(Span::SECOND);
        let _ = engine.settle(low, 4).await.unwrap();
        let _ = engine.settle(high, 13).await.unwrap();
        let _ = engine.settle(same, 10).await.unwrap();
        engine.set_enforcement(Enforcement::Off);
        let written = written(&dir, &lines);
        let charged = r#""charged":[{"rule":"daily","mode":"store","units":10,"bucket":b1,"period_end_ns":1800057600000000000},{"rule":"ever","mode":"store","units":10,"bucket":b2,"period_end_ns":null},{"rule":"rate","mode":"store","units":10}]}"#;
        assert!(written[0].ends_with(charged), "{}", written[0]);
        let begin = r#"{"time":"2027-01-15T08:00:01.123Z","node":"n","settlement":null,"mode":"store","time_ns":1800000001123456789,"corrections":["#;
        let rest = |change: &str| {
            format!(
                r#"{begin}{{"namespace":"default","rule":"daily",{change},"bucket":b1,"period_end_ns":1800057600000000000}},{{"namespace":"default","rule":"ever",{change},"bucket":b2,"period_end_ns":null}},{{"namespace":"default","rule":"rate",{change}}}]}}"#
            )
        };
        assert_eq!(written[3..], [rest(r#""refunded":6"#), rest(r#""charged":3"#)]);
    }

    /// A store that may have charged, and does not answer.
    struct Silent(Memory);

    impl Store for Silent {
        async fn take(&self, _: &[Charge], _: Span, _: &mut Outcomes) -> Result<Taken, StoreError> {
            Err(StoreError { kind: StoreErrorKind::Indeterminate, detail: String::new() })
        }

        async fn give_back(&self, receipts: &[tollgate_core::Receipt]) -> Result<usize, StoreError> {
            self.0.give_back(receipts).await
        }

        async fn forget(&self, _: &[Charge]) -> Result<(), StoreError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn charges_without_an_answer_are_listed_if_they_are_on_quotas() {
        let (dir, lines, log) = log();
        let clock = ManualClock::at(Time::from_nanos(1_800_000_000_123_456_789));
        let engine = Engine::with_clock(Silent(Memory::default()), rules(), std::sync::Arc::new(clock));
        let engine = engine.with_observer(log);
        let request = Request::new().with(Attribute::ApiKey, "k");
        drop(engine.decide(&request.cost(5)).await);
        drop(engine.decide(&request.peek()).await);
        let written = written(&dir, &lines);
        let expected = r#"{"time":"2027-01-15T08:00:00.123Z","node":"n","unanswered":[{"units":5,"bucket":b1,"period_end_ns":1800057600000000000},{"units":5,"bucket":b2,"period_end_ns":null}]}"#;
        assert_eq!(written.iter().filter(|line| line.contains("unanswered")).collect::<Vec<_>>(), [expected]);
    }
}
