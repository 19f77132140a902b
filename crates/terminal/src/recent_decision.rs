//! Recent decisions as text: one at length, several as a table, a refusal on one line.

use serde_json::Value;
use tollgate_core::{Span, Time};

use crate::{Palette, TextTable, cell, human_duration, member, timestamp, visible};

/// A list of the API: the latest refusal at length, then all decisions as a table, and the nodes that are not in it.
pub fn decisions_text(list: &Value, now: Time, palette: Palette) -> String {
    let of = |name: &str| list.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let decisions = of("decisions");
    let mut text = String::new();
    if let Some(refused) = decisions.iter().find(|own| own.get("allowed") == Some(&Value::Bool(false))) {
        text += &decision_text(refused, now, palette);
        text.push('\n');
    }
    text += &match decisions.is_empty() {
        true => "there is no recent decision about that client\n".to_owned(),
        false => table(decisions, now, palette),
    };
    for node in of("missing_nodes").iter().filter_map(Value::as_str) {
        text += &palette.bad(&format!("node {node} did not answer: its decisions are missing"));
        text.push('\n');
    }
    text
}

/// Decisions, one per line.
fn table(decisions: &[Value], now: Time, palette: Palette) -> String {
    let mut table =
        TextTable::new(["AT", "DECISION", "CLIENT", "RULE", "OUTCOME", "USED", "LIMIT", "RETRY AFTER"], |heading| {
            palette.faint(heading)
        });
    decisions.iter().for_each(|decision| table.row(row(decision, now)));
    table.to_string()
}

/// The cells of one decision.
fn row(decision: &Value, now: Time) -> [(String, String); 8] {
    let word = |name: &str| match decision.get(name) {
        None | Some(Value::Null) => "-".to_owned(),
        Some(_) => visible(&member(decision, name)),
    };
    let at = decision.get("at").and_then(Value::as_str).unwrap_or_default();
    [
        timestamp(at, now),
        word("decision_id"),
        word("client"),
        word("rule"),
        outcome(decision).to_owned(),
        word("used"),
        word("capacity"),
        retry(decision),
    ]
    .map(cell)
}

fn outcome(decision: &Value) -> &'static str {
    let is = |name: &str| decision.get(name) == Some(&Value::Bool(true));
    match (is("allowed"), is("shadow_denied")) {
        (true, true) => "allowed (shadow denied)",
        (true, false) => "allowed",
        (false, _) => "denied",
    }
}

fn retry(decision: &Value) -> String {
    match decision.get("retry_after_ms") {
        Some(Value::Number(number)) if number.as_u64() == Some(0) => "-".to_owned(),
        Some(Value::Number(number)) => human_duration(Span::from_millis(number.as_u64().unwrap_or_default())),
        _ => "never".to_owned(),
    }
}

/// One decision at length.
pub fn decision_text(decision: &Value, now: Time, palette: Palette) -> String {
    let word = |name: &str| visible(&member(decision, name));
    let has = |name: &str| decision.get(name).is_some_and(|value| !value.is_null());
    let time = |name: &str| timestamp(decision.get(name).and_then(Value::as_str).unwrap_or_default(), now);
    let line = |label: &str, value: String| format!("{}  {value}\n", palette.faint(&format!("{label:<8}")));
    let is_denied = decision.get("allowed") == Some(&Value::Bool(false));
    let by = if has("rule") { format!(" by {}", palette.strong(&word("rule"))) } else { String::new() };
    let verdict = if is_denied { palette.bad(outcome(decision)) } else { palette.good(outcome(decision)) };
    let mut text = format!("{verdict}{by}, {}\n\n", time("at"));
    text += &line("decision", word("decision_id"));
    text += &line("client", format!("{} in namespace {}", word("client"), word("namespace")));
    if has("limit") {
        let window = decision.get("window_ms").and_then(Value::as_u64);
        let per =
            window.map(|millis| format!(" per {}", human_duration(Span::from_millis(millis)))).unwrap_or_default();
        let own = match decision.get("override") == Some(&Value::Bool(true)) {
            true => format!(", by an override: the rule itself says {}", word("rule_limit")),
            false => String::new(),
        };
        text += &line("limit", format!("{}{per}{own}", word("limit")));
        text += &line("used", format!("{} of {}, asked for {}", word("used"), word("capacity"), word("cost")));
    }
    if has("limited_since") {
        text += &line("refused", format!("since {}", time("limited_since")));
    }
    if is_denied {
        let ends = if has("ends_at") { format!(", at {}", time("ends_at")) } else { String::new() };
        text += &line("retry", format!("after {}{ends}", retry(decision)));
    }
    if has("plan") {
        text += &line("plan", word("plan"));
    }
    text += &line(
        "decided",
        format!("by {}, rules generation {}, node {}", word("mode"), word("generation"), word("node")),
    );
    text + &rules_text(decision, palette)
}

/// The other rules that applied.
fn rules_text(decision: &Value, palette: Palette) -> String {
    let rules = decision.get("rules").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if rules.len() < 2 {
        return String::new();
    }
    let mut table = TextTable::new(["RULE", "OUTCOME", "USED", "LIMIT", "REMAINING", "RETRY AFTER"], |heading| {
        palette.faint(heading)
    });
    for rule in rules {
        let word = |name: &str| visible(&member(rule, name));
        let shadow = if rule.get("shadow") == Some(&Value::Bool(true)) { " (shadow)" } else { "" };
        let outcome = format!("{}{shadow}", outcome(rule));
        table.row([word("rule"), outcome, word("used"), word("capacity"), word("remaining"), retry(rule)].map(cell));
    }
    format!("\n{table}")
}

/// A refusal on one line.
pub fn refusal_line(decision: &Value, now: Time, palette: Palette) -> String {
    let [at, id, client, rule, outcome, used, limit, retry] = row(decision, now).map(|(text, _)| text);
    let outcome = if outcome == "denied" { palette.bad(&outcome) } else { palette.warn(&outcome) };
    format!("{at}  {id}  {outcome}  {client}  by {rule}  used {used} of {limit}  retry after {retry}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_names_the_nodes_that_are_missing() {
        let list = json!({ "decisions": [], "missing_nodes": ["b\u{1b}"] });
        let text = decisions_text(&list, Time::from_secs(1_800_000_000), Palette { colour: false });
        assert!(text.starts_with("there is no recent decision about that client\nnode b"), "{text}");
        assert!(text.ends_with("did not answer: its decisions are missing\n") && !text.contains('\u{1b}'), "{text}");
    }
}
