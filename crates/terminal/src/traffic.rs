//! The overview of the traffic as text.

use serde_json::Value;
use tollgate_core::Time;

use crate::{Palette, TextTable, cell, grouped, member, timestamp, visible};

/// What is allowed and refused now.
pub fn overview_text(overview: &Value, now: Time, palette: Palette) -> String {
    let part = |name: &str| overview.get(name).cloned().unwrap_or_default();
    let (rates, totals) = (part("per_second"), part("totals"));
    let number = |of: &Value, name: &str| grouped(of.get(name).and_then(Value::as_u64).unwrap_or_default());
    let at_least = if overview.get("limited_now_is_exact") == Some(&Value::Bool(false)) { "at least " } else { "" };
    let mut text = format!(
        "{} allowed/s  {} denied/s  {} shadow denied/s  {} clients limited now\n",
        palette.good(&member(&rates, "allowed")),
        palette.bad(&member(&rates, "denied")),
        palette.warn(&member(&rates, "shadow_denied")),
        palette.strong(&format!("{at_least}{}", member(overview, "limited_now"))),
    );
    let in_all = format!(
        "in {} s: {} allowed, {} denied, {} shadow denied",
        member(overview, "window_seconds"),
        number(&totals, "allowed"),
        number(&totals, "denied"),
        number(&totals, "shadow_denied"),
    );
    text += &format!("{}\n", palette.faint(&in_all));
    for node in list(overview, "nodes") {
        let is = |name: &str| node.get(name).and_then(Value::as_bool).unwrap_or_default();
        let name = member(&node, "node");
        let warning = match (is("missing"), is("answered")) {
            (true, _) => format!("node {name} does not report, last seen {}", at(&node, "seen_at", now)),
            (false, false) => format!("node {name} did not answer: its clients are not in these lists"),
            (false, true) => continue,
        };
        text += &format!("{}\n", palette.bad(&warning));
    }
    text += &rules(&list(overview, "top_rules"), palette);
    for (title, name) in [
        ("most denied", "top_denied"),
        ("newly denied", "newly_denied"),
        ("denied in shadow mode", "shadow_denied"),
        ("closest to the limit", "closest"),
    ] {
        text += &clients(title, &list(overview, name), now, palette);
    }
    text
}

fn rules(rules: &[Value], palette: Palette) -> String {
    let mut table = TextTable::new(["NAMESPACE", "RULE", "ALLOWED", "DENIED", "SHADOW DENIED", "COST"], |heading| {
        palette.faint(heading)
    });
    for rule in rules {
        let word = |name: &str| visible(&member(rule, name));
        table.row(["namespace", "rule", "allowed", "denied", "shadow_denied", "cost"].map(|name| cell(word(name))));
    }
    if rules.is_empty() { String::new() } else { format!("\n{table}") }
}

fn clients(title: &str, clients: &[Value], now: Time, palette: Palette) -> String {
    if clients.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(["CLIENT", "RULE", "COUNT", "OF LIMIT", "SINCE"], |heading| palette.faint(heading));
    for client in clients {
        let word = |name: &str| visible(&member(client, name));
        let error = client.get("error").and_then(Value::as_u64).unwrap_or_default();
        let count = if error > 0 { format!("{} (-{error})", word("count")) } else { word("count") };
        let share = client.get("share_permille").and_then(Value::as_u64);
        let share = share.map_or_else(|| "-".to_owned(), |share| format!("{} %", share / 10));
        table.row([word("client"), word("rule"), count, share, at(client, "limited_since", now)].map(cell));
    }
    format!("\n{}\n{table}", palette.strong(title))
}

fn at(of: &Value, name: &str, now: Time) -> String {
    of.get(name).and_then(Value::as_str).map_or_else(|| "-".to_owned(), |text| timestamp(text, now))
}

fn list(of: &Value, name: &str) -> Vec<Value> {
    of.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_that_are_missing_are_named_on_lines_of_their_own() {
        let node = |name: &str, missing: bool, answered: bool| json!({ "node": name, "missing": missing, "answered": answered, "seen_at": "2026-11-20T01:00:00Z" });
        let nodes = [node("a", false, true), node("b\u{1b}", false, false), node("c", true, false)];
        let text = overview_text(&json!({ "nodes": nodes }), Time::from_secs(1_800_000_000), Palette { colour: false });
        assert!(text.lines().nth(1).is_some_and(|line| line.ends_with(" shadow denied")), "{text}");
        let named: Vec<&str> = text.lines().filter(|line| line.starts_with("node ")).collect();
        assert_eq!(named[0], "node b\\u{1b} did not answer: its clients are not in these lists");
        assert!(named[1].starts_with("node c does not report, last seen ") && named.len() == 2, "{text}");
    }
}
