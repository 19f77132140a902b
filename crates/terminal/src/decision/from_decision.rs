//! Decisions of this process.

use tollgate_core::{Outcome, Span, Wait};
use tollgate_engine::{Decision, Ruling};
use tollgate_ruleset::Rule;

use super::view::{DecisionView, RowVerdict, RulingRow, room_text, wait_text};
use crate::visible;

impl From<&Decision> for DecisionView {
    fn from(decision: &Decision) -> DecisionView {
        let deciding = decision.deciding_rule();
        DecisionView {
            allowed: decision.is_allowed(),
            rule: deciding.map(|(rule, _)| rule.name.clone()),
            reason: decision.reason().map(|reason| reason.text().to_owned()),
            room: deciding.and_then(|(_, outcome)| outcome).map(|outcome| (outcome.remaining, outcome.limit)),
            wait: decision.retry_after(),
            delay: decision.delay(),
            mode: decision.decided_by.name().to_owned(),
            generation: decision.generation(),
            rows: decision.rulings().iter().map(|ruling| row(decision, ruling)).collect(),
        }
    }
}

fn row(decision: &Decision, ruling: &Ruling) -> RulingRow {
    let outcome = ruling.outcome.as_ref();
    RulingRow {
        decides: decision.deciding().is_some_and(|deciding| deciding.rule == ruling.rule),
        name: decision.rule(ruling).map(label).unwrap_or_default(),
        verdict: match outcome {
            _ if ruling.refused() => RowVerdict::Denied,
            None => RowVerdict::Unlimited,
            Some(_) => RowVerdict::Allowed,
        },
        limit: outcome.map(|outcome| outcome.limit),
        remaining: outcome.map(|outcome| outcome.remaining),
        wait: outcome.map_or(Wait::None, |outcome| outcome.wait),
        reset: outcome.map(|outcome| outcome.reset_after),
        delay: outcome.map_or(Span::ZERO, |outcome| outcome.delay),
        shadow: !ruling.enforced,
    }
}

/// The name of a rule; a generated name is followed by the line of the rule.
fn label(rule: &Rule) -> String {
    match rule.spec.name {
        Some(_) => rule.name.clone(),
        None => format!("{} (line {})", rule.name, rule.spec.at.line),
    }
}

/// The outcome of one rule in one line: `per-key allowed (4 of 5 left)`.
pub fn ruling_text(decision: &Decision, ruling: &Ruling) -> String {
    let name = decision.rule(ruling).map_or("?", |rule| rule.name.as_str());
    let room = |outcome: &Outcome| room_text(outcome.remaining, outcome.limit);
    let verdict = match &ruling.outcome {
        None => "sets no limit".to_owned(),
        Some(outcome) if outcome.allowed => format!("allowed ({})", room(outcome)),
        Some(outcome) => format!("denied ({}; {})", room(outcome), wait_text(outcome.wait)),
    };
    let shadow = if ruling.enforced { "" } else { ", only in shadow" };
    visible(&format!("{name} {verdict}{shadow}"))
}
