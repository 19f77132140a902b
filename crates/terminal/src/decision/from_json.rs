//! Decisions in the JSON of `/v1/check`. Missing members are shown as unknown, not rejected: servers of other versions
//! may send other members.

use serde_json::Value;
use tollgate_core::{Span, Wait};

use super::view::{DecisionView, RowVerdict, RulingRow};

impl From<&Value> for DecisionView {
    fn from(answer: &Value) -> DecisionView {
        let rule = text(answer, "rule");
        let rows = match answer.get("rules").and_then(Value::as_array) {
            Some(rules) => rules.iter().map(|verdict| row(verdict, rule.as_deref())).collect(),
            // A single rule is not listed: its members are those of the response.
            None if rule.is_some() => vec![row(answer, rule.as_deref())],
            None => Vec::new(),
        };
        DecisionView {
            allowed: flag(answer, "allowed"),
            room: number(answer, "remaining").zip(number(answer, "limit")),
            reason: text(answer, "reason"),
            wait: wait(answer),
            delay: millis(answer, "delay_ms").unwrap_or(Span::ZERO),
            mode: text(answer, "mode").unwrap_or_else(|| "unknown".to_owned()),
            generation: number(answer, "generation").unwrap_or(0),
            rule,
            rows,
        }
    }
}

fn row(verdict: &Value, deciding: Option<&str>) -> RulingRow {
    let name = text(verdict, "rule").unwrap_or_else(|| "?".to_owned());
    let (limit, remaining) = (number(verdict, "limit"), number(verdict, "remaining"));
    RulingRow {
        decides: deciding == Some(&name),
        name,
        verdict: match flag(verdict, "allowed") {
            false => RowVerdict::Denied,
            true if limit.is_none() => RowVerdict::Unlimited,
            true => RowVerdict::Allowed,
        },
        limit,
        remaining,
        wait: wait(verdict),
        reset: None,
        delay: millis(verdict, "delay_ms").unwrap_or(Span::ZERO),
        shadow: flag(verdict, "shadow"),
    }
}

fn wait(verdict: &Value) -> Wait {
    match millis(verdict, "retry_after_ms") {
        _ if flag(verdict, "never") => Wait::Never,
        Some(span) => Wait::For(span),
        None => Wait::None,
    }
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn number(value: &Value, name: &str) -> Option<u64> {
    value.get(name).and_then(Value::as_u64)
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn millis(value: &Value, name: &str) -> Option<Span> {
    number(value, name).map(|millis| Span::from_nanos(millis.saturating_mul(1_000_000)))
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Attribute, ManualClock, Request, Time};
    use tollgate_engine::{Engine, rules_from_yaml};
    use tollgate_service::explain::decision_json;

    use super::*;

    const RULES: &str = r#"
rules:
  - { name: second, match: { tier: free }, limit: { requests: 2, window: 1s } }
  - { name: day, match: { tier: free }, limit: { requests: 9, window: 1d, algorithm: fixed_window } }
  - { name: trial, match: { tier: free }, limit: { requests: 1, window: 1h }, mode: shadow }
  - { name: alone, match: { tier: paid }, limit: { requests: 2, window: 1s } }
key_by: api_key
"#;

    /// The JSON of a decision shows the same as the decision itself, except for members that the JSON lacks.
    #[test]
    fn json_shows_the_same_as_the_decision() {
        for (tier, cost) in [("free", 1), ("free", 2), ("free", 3), ("paid", 1), ("paid", 7), ("none", 1)] {
            let engine = Engine::on_clock(rules_from_yaml(RULES).unwrap(), ManualClock::at(Time::from_secs(86_400)));
            let request = Request::new().with(Attribute::ApiKey, "a").with(Attribute::Tier, tier).cost(cost);
            for _ in 0..3 {
                let decision = engine.decide_now(&request);
                let mut made = DecisionView::from(&decision);
                made.rows.iter_mut().for_each(|row| row.reset = None);
                assert_eq!(DecisionView::from(&decision_json(&decision)), made, "{tier} {cost}");
            }
        }
    }
}
