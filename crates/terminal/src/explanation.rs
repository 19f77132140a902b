//! Explanations as text, from the JSON of `/v1/explain` or of `tollgate explain --rules`, which have the same format.
//! Every value is printed through [`visible`], because it may come from a server.

use serde_json::Value;
use tollgate_core::Span;
use tollgate_rules::duration;

use super::{DecisionView, Palette, human_duration, visible};

/// Every rule and its evaluation of the request, then the decision.
pub fn explained_text(request: &str, explained: &Value, palette: Palette) -> String {
    let mut text = format!("{}  {}\n", palette.faint("request "), visible(request));
    let known = explained.get("client").and_then(Value::as_object).into_iter().flatten();
    let known: Vec<String> =
        known.map(|(name, value)| format!("{name} {}", visible(value.as_str().unwrap_or("?")))).collect();
    if !known.is_empty() {
        text.push_str(&format!("{}  {}\n", palette.faint("known   "), known.join(", ")));
    }
    text.push('\n');
    for rule in list(explained, "rules") {
        text.push_str(&rule_text(rule, palette));
        text.push('\n');
    }
    let decision = explained.get("decision").unwrap_or(&Value::Null);
    text + &format!("{}  {}\n", palette.faint("decision"), DecisionView::from(decision).headline(palette))
}

/// The effective values of one rule.
pub fn effective_text(rule: &Value, palette: Palette) -> String {
    let mut text = format!("{}\n", heading(rule, palette));
    let mut add = |label: &str, value: &str| text.push_str(&labelled(label, value, palette));
    if let Some(description) = string(rule, "description") {
        add("about", description.trim_end());
    }
    add("match", &matches_text(rule));
    add("key_by", &key_by_text(rule));
    add("limit", &limit_text(rule));
    add("cost", &cost_text(rule));
    add("policy", &policy_text(rule));
    let replaces = replaces_text(rule);
    if !replaces.is_empty() {
        add("replaces", &replaces);
    }
    text + "\n"
}

/// The key; where it is the default, what becomes of requests without it.
fn key_by_text(rule: &Value) -> String {
    let key_by = string(rule, "key_by").unwrap_or_default();
    match (key_by, string(rule, "missing")) {
        ("client_key", Some("skip")) => format!("{key_by}, requests without one are not counted"),
        _ => key_by.to_owned(),
    }
}

fn rule_text(rule: &Value, palette: Palette) -> String {
    let applies = flag(rule, "applies");
    let verdict = if applies { palette.good("applies") } else { palette.faint("does not apply") };
    let mut text = format!("{}: {verdict}\n", heading(rule, palette));
    let mut add = |label: &str, value: &str| text.push_str(&labelled(label, value, palette));
    if !applies {
        add("because", string(rule, "because").unwrap_or("no reason given"));
        return text;
    }
    if let Some(bucket) = string(rule, "bucket") {
        let own = override_text(rule);
        add("key", &key_text(rule));
        add("bucket", bucket);
        if let (Some(key), Some(slot)) = (string(rule, "store_key"), number(rule, "slot")) {
            add("store", &format!("{key} in slot {slot}"));
        }
        add("limit", &format!("{}{own}", limit_text(rule)));
        for grant in rule.get("grants").and_then(Value::as_array).into_iter().flatten() {
            add("granted", &grant_text(grant));
        }
        add("cost", &number(rule, "charged").unwrap_or(0).to_string());
    }
    if string(rule, "bucket").is_none() && rule.get("override").is_some_and(Value::is_object) {
        add("limit", &format!("unlimited{}", override_text(rule)));
    }
    add("policy", &policy_text(rule));
    let replaces = replaces_text(rule);
    if !replaces.is_empty() {
        add("replaces", &replaces);
    }
    add("state", &state_text(rule));
    add("outcome", &outcome_text(rule));
    text
}

pub(super) fn heading(rule: &Value, palette: Palette) -> String {
    let line = match (string(rule, "location"), number(rule, "line")) {
        (Some(location), _) => format!("({} {})", string(rule, "source").unwrap_or("file"), visible(location)),
        (None, Some(line)) if line > 0 => format!("(line {line})"),
        (None, _) => format!("({})", string(rule, "source").unwrap_or("database")),
    };
    let plan = string(rule, "plan").map(|plan| format!(" of plan {}", visible(plan))).unwrap_or_default();
    format!("{}{plan} {}", palette.strong(string(rule, "name").unwrap_or("?")), palette.faint(&line))
}

/// ` (override migration-42 for user:42, until 2026-12-01T00:00:00Z: a reason)`, or nothing.
fn override_text(rule: &Value) -> String {
    let Some(held) = rule.get("override").filter(|held| held.is_object()) else {
        return if flag(rule, "overridden") { " (asked for by the request)".to_owned() } else { String::new() };
    };
    let id = string(held, "override_id").map(|id| format!(" {id}")).unwrap_or_default();
    let until = string(held, "valid_until").map(|until| format!(", until {until}")).unwrap_or_default();
    let reason = string(held, "reason").filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!(" (override{id} for {}{until}{reason})", string(held, "client_key").unwrap_or("?"))
}

/// `500000 for user:42, from 2026-12-01T00:00:00Z, until 2026-12-20T00:00:00Z, grant topup-7: ticket 4711`.
fn grant_text(grant: &Value) -> String {
    let word = |name: &str| string(grant, name).unwrap_or("?");
    let until = string(grant, "valid_until").map(|until| format!(", until {until}")).unwrap_or_default();
    let amount = number(grant, "amount").unwrap_or(0);
    let id = string(grant, "grant_id").map(|id| format!(", grant {id}")).unwrap_or_default();
    let reason = string(grant, "reason").filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{amount} for {}, from {}{until}{id}{reason}", word("client_key"), word("valid_from"))
}

pub(super) fn labelled(label: &str, value: &str, palette: Palette) -> String {
    let value = value.lines().map(visible).collect::<Vec<_>>().join("\n            ");
    format!("  {}  {value}\n", palette.faint(&format!("{label:<8}")))
}

/// Patterns by attribute; unwanted ones begin with `!`.
fn matches_text(of: &Value) -> String {
    let conditions = of.get("match").and_then(Value::as_object).into_iter().flatten();
    // JSON objects are sorted by name; the endpoint comes last, as in most rules files.
    let (endpoint, others): (Vec<_>, Vec<_>) = conditions.partition(|(name, _)| *name == "endpoint");
    let shown = others.into_iter().chain(endpoint).map(|(name, patterns)| format!("{name}: {}", strings(patterns)));
    match shown.collect::<Vec<_>>().join("; ") {
        text if text.is_empty() => "every request".to_owned(),
        text => text,
    }
}

pub(super) fn limit_text(rule: &Value) -> String {
    let Some(limit) = rule.get("limit").filter(|limit| limit.is_object()) else { return "unlimited".to_owned() };
    let name = string(limit, "algorithm").unwrap_or("?");
    let count = |name: &str| number(limit, name).unwrap_or(0);
    let time = |name: &str| string(limit, name).unwrap_or("?");
    let rate = format!("{} per {}", count("requests"), time("window"));
    let has = |name: &str| limit.get(name).is_some();
    match count("capacity") {
        0 => format!("{name}, lets nothing pass"),
        _ if has("every") => quota_text(limit),
        _ if has("reserved") => {
            let (share, class) =
                (string(limit, "reserved").unwrap_or("?"), string(limit, "reserved_for").unwrap_or("?"));
            format!("{name}, {} slots of {} each, {share} reserved for {class}", count("slots"), time("slot_ttl"))
        }
        _ if has("slots") => format!("{name}, {} slots of {} each", count("slots"), time("slot_ttl")),
        most if has("max_delay") => {
            format!("{name} as queue, {rate}, waits up to {}, {most} at most", time("max_delay"))
        }
        _ if has("burst") => {
            let interval = duration::display(count("interval_ns"));
            format!("{name}, {rate}, burst {}, one every {interval}", count("burst"))
        }
        _ if string(limit, "align") == Some("key") => format!("{name}, {rate}, windows offset by key"),
        _ => format!("{name}, {rate}"),
    }
}

/// The amount, and the period of the request if there is one: a client may have a calendar of its own.
fn quota_text(limit: &Value) -> String {
    let word = |name: &str| string(limit, name).unwrap_or("?");
    let amount = format!("quota, {} per {}", number(limit, "amount").unwrap_or(0), word("every"));
    let bound = |name: &str| limit.get("period").and_then(|period| string(period, name));
    match (bound("start").zip(bound("end")), word("every")) {
        (_, "never") => format!("quota, {} in all", number(limit, "amount").unwrap_or(0)),
        (Some((start, end)), _) => format!("{amount}, from {start} to {end}"),
        (None, _) => format!("{amount}, from {} in {}", word("anchor"), word("time_zone")),
    }
}

fn cost_text(rule: &Value) -> String {
    match rule.get("cost") {
        Some(Value::Array(cases)) => {
            let case = |case: &Value| format!("{} for {}", number(case, "cost").unwrap_or(0), matches_text(case));
            cases.iter().map(case).collect::<Vec<_>>().join("; ")
        }
        cost => cost.and_then(Value::as_u64).unwrap_or(1).to_string(),
    }
}

/// What the rule counts, unless it counts requests.
fn meter_words(rule: &Value) -> Option<String> {
    match rule.get("meter")? {
        Value::Object(weights) => {
            let weights = weights.iter().map(|(name, weight)| format!("{weight} × {name}"));
            Some(format!("meter {}", weights.collect::<Vec<_>>().join(" + ")))
        }
        meter => meter.as_str().filter(|name| *name != "requests").map(|name| format!("meter {name}")),
    }
}

fn policy_text(rule: &Value) -> String {
    let word = |name: &str| string(rule, name).unwrap_or("?");
    let mode = match string(rule, "own_mode") {
        Some(own) => format!("{} (switched, instead of {own})", word("mode")),
        None => word("mode").to_owned(),
    };
    let mut words = vec![
        mode,
        format!("on_fail {}", word("on_fail")),
        format!("consistency {}", word("consistency")),
        format!("missing {}", word("missing")),
    ];
    words.extend(meter_words(rule));
    words.extend((string(rule, "unmetered") == Some("reject")).then(|| "unmetered reject".to_owned()));
    words.extend(flag(rule, "count_denied").then(|| "count_denied".to_owned()));
    words.extend(rule.get("penalty").and_then(penalty_text));
    words.extend(flag(rule, "accept_limits").then(|| "accept_limits".to_owned()));
    words.extend(string(rule, "soft").map(|soft| format!("soft {soft}")));
    words.extend(number(rule, "max_debt").map(|debt| format!("max_debt {debt}")));
    words.extend(number(rule, "shards").filter(|shards| *shards > 1).map(|shards| format!("{shards} shards")));
    words.extend(string(rule, "max_memory").map(|share| format!("max_memory {share}")));
    words.extend(string(rule, "lease").map(|lease| format!("lease {lease}")));
    let resource = string(rule, "resource").filter(|resource| Some(*resource) != string(rule, "name"));
    words.extend(resource.map(|resource| format!("resource {resource}")));
    words.join(", ")
}

fn penalty_text(penalty: &Value) -> Option<String> {
    let (after, within) = (number(penalty, "after")?, string(penalty, "within")?);
    let growth = number(penalty, "growth").filter(|growth| *growth > 1);
    let growth = growth.map(|growth| format!(", each further one {growth} times longer")).unwrap_or_default();
    Some(format!("penalty {} after {after} denials within {within}{growth}", string(penalty, "block")?))
}

fn replaces_text(rule: &Value) -> String {
    rule.get("replaces").map(strings).unwrap_or_default()
}

pub(super) fn key_text(rule: &Value) -> String {
    let part = |part: &Value| {
        let attribute = string(part, "attribute").unwrap_or("?").to_owned();
        match string(part, "value") {
            Some(value) => format!("{attribute}={value}"),
            None => format!("{attribute} (absent, shared)"),
        }
    };
    match list(rule, "key").map(part).collect::<Vec<_>>().join(", ") {
        text if text.is_empty() => "global".to_owned(),
        text => text,
    }
}

/// Why the bucket of an applicable rule was not read.
enum Reading {
    /// The rule keeps no bucket.
    None,
    /// The store did not respond: `on_fail` decided.
    Failed,
    /// Limits are switched off: no rule was evaluated.
    Skipped,
}

fn reading(rule: &Value) -> Reading {
    match (string(rule, "bucket"), rule.get("allowed")) {
        (None, _) => Reading::None,
        (Some(_), Some(_)) => Reading::Failed,
        (Some(_), None) => Reading::Skipped,
    }
}

/// The state of the bucket before this request.
fn state_text(rule: &Value) -> String {
    let limit = rule.get("limit").and_then(|limit| number(limit, "capacity")).unwrap_or(0);
    match number(rule, "used_before") {
        Some(0) => format!("unused, {} left", number(rule, "remaining_before").unwrap_or(limit)),
        Some(used) => format!("{used} of {limit} used"),
        None => match reading(rule) {
            Reading::None => "keeps none".to_owned(),
            Reading::Failed => "unknown: the store could not be asked".to_owned(),
            Reading::Skipped => "not read: limits are switched off".to_owned(),
        },
    }
}

fn outcome_text(rule: &Value) -> String {
    let Some(remaining) = number(rule, "remaining") else {
        return match reading(rule) {
            Reading::None => "allowed without limit".to_owned(),
            Reading::Skipped => "allowed: limits are switched off".to_owned(),
            Reading::Failed => {
                let verdict = if flag(rule, "allowed") { "allowed" } else { "denied" };
                format!("{verdict} by on_fail {}", string(rule, "on_fail").unwrap_or("?"))
            }
        };
    };
    let millis = |name: &str| number(rule, name).map(|millis| Span::from_nanos(millis.saturating_mul(1_000_000)));
    let verdict = match (flag(rule, "allowed"), millis("retry_after_ms")) {
        (true, _) => "allowed".to_owned(),
        (false, Some(wait)) => format!("denied, retry after {}", human_duration(wait)),
        (false, None) => "denied, can never pass".to_owned(),
    };
    let reset = millis("reset_after_ms").map(|reset| format!(", as new after {}", human_duration(reset)));
    format!("{verdict}, {remaining} left{}", reset.unwrap_or_default())
}

pub(super) fn string<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

fn strings(value: &Value) -> String {
    let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.collect::<Vec<_>>().join(", ")
}

pub(super) fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

pub(super) fn number(value: &Value, name: &str) -> Option<u64> {
    value.get(name).and_then(Value::as_u64)
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// An unavailable store is not a rule without a bucket.
    #[test]
    fn a_count_that_could_not_be_read_is_unknown() {
        let texts = |rule: Value| [state_text(&rule), outcome_text(&rule)];
        let unlimited = json!({ "allowed": true });
        assert_eq!(texts(unlimited), ["keeps none", "allowed without limit"]);
        let away = json!({ "bucket": "12ab", "allowed": false, "on_fail": "deny", "limit": { "capacity": 5 } });
        assert_eq!(texts(away), ["unknown: the store could not be asked", "denied by on_fail deny"]);
        let off = json!({ "bucket": "12ab", "on_fail": "local", "limit": { "capacity": 5 } });
        assert_eq!(texts(off), ["not read: limits are switched off", "allowed: limits are switched off"]);
    }
}
