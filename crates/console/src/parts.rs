//! Parts that several pages show: headings, badges, empty states, confirmations, problems, links to rules and clients.

use maud::{Markup, html};
use serde_json::Value;

use crate::api::CallProblem;
use crate::format::grouped;
use crate::json::{is_true, list, member, plain, text};
use crate::layout::form_token;
use crate::operator::Operator;
use crate::parameters::url;

/// A heading with what the page is about, and its actions.
pub(crate) fn heading(title: &str, about: Markup, actions: Markup) -> Markup {
    html! {
        div class="heading" {
            div { h1 { (title) } p class="about" { (about) } }
            div class="actions" { (actions) }
        }
    }
}

/// A small label: a mode, a source, a state.
pub(crate) fn badge(text: &str) -> Markup {
    let class = match text {
        "enforce" | "allowed" | "up" | "active" | "closed" | "database" | "ok" | "delivered" => "good",
        "denied" | "off" | "away" | "other rules" | "down" | "open" | "revoked" | "delete" | "failed" => "bad",
        away if away.ends_with(" away") => "bad",
        "shadow" | "recovering" | "waiting" | "expired" | "half-open" | "would deny" | "penalty" => "warn",
        _ => "plain",
    };
    html! { span class={ "badge " (class) } { (text) } }
}

/// The state of a database: to have none is no fault.
pub(crate) fn database_badge(state: &str) -> Markup {
    html! { @if state == "off" { span class="dim" { "none" } } @else { (badge(state)) } }
}

/// What to do where nothing is to be seen.
pub(crate) fn empty(title: &str, teaches: Markup) -> Markup {
    html! { div class="empty" { p { strong { (title) } } (teaches) } }
}

/// A part of a page that could not be read.
pub(crate) fn trouble(problem: &CallProblem) -> Markup {
    html! { div class="note bad" role="alert" { p { (problem.detail) } (faults(problem)) } }
}

/// The faults of a body, with line and column where there are any.
pub(crate) fn faults(problem: &CallProblem) -> Markup {
    html! {
        @if !problem.faults.is_empty() {
            ul class="faults" {
                @for fault in &problem.faults {
                    li {
                        @if let Some((line, column)) = fault.position {
                            span class="position" data-line=(line) data-column=(column) { "line " (line) ", column " (column) } " "
                        }
                        strong { (fault.message) }
                        @if !fault.help.is_empty() { span class="help" { (fault.help) } }
                    }
                }
            }
        }
    }
}

/// A change behind a second click: a button opens what will happen, and the form that does it.
pub(crate) struct Confirmed<'a> {
    /// On the first button.
    pub(crate) label: &'a str,
    /// What will happen.
    pub(crate) about: Markup,
    /// Where the form goes.
    pub(crate) action: &'a str,
    /// Its hidden fields.
    pub(crate) hidden: &'a [(&'a str, &'a str)],
    /// Its visible fields.
    pub(crate) fields: Markup,
    /// On the button that does it.
    pub(crate) verb: &'a str,
    /// True if it takes something away.
    pub(crate) is_severe: bool,
}

impl Confirmed<'_> {
    pub(crate) fn markup(&self, operator: &Operator<'_>) -> Markup {
        html! {
            details class="confirm" {
                summary class={ "button" @if self.is_severe { " severe" } } { (self.label) }
                form method="post" action=(self.action) {
                    (form_token(operator))
                    @for (name, value) in self.hidden { input type="hidden" name=(name) value=(value); }
                    p { (self.about) }
                    (self.fields)
                    button class={ "button primary" @if self.is_severe { " severe" } } { (self.verb) }
                }
            }
        }
    }
}

/// A new secret, which no other page shows.
pub(crate) fn shown_once(secret: &str) -> Markup {
    html! {
        div class="note good" role="status" {
            p { strong { "Shown this once: keep it now." } }
            pre { code { (secret) } }
        }
    }
}

/// A labelled field of a form.
pub(crate) fn field(label: &str, name: &str, value: &str, hint: &str) -> Markup {
    html! {
        label class="field" {
            span { (label) }
            input name=(name) value=(value) maxlength="500";
            @if !hint.is_empty() { small { (hint) } }
        }
    }
}

/// A choice of a form: values and what they are called.
pub(crate) fn choice(label: &str, name: &str, value: &str, options: &[(&str, &str)]) -> Markup {
    html! {
        label class="field" {
            span { (label) }
            select name=(name) {
                @for (option, shown) in options {
                    option value=(option) selected[*option == value] { (shown) }
                }
            }
        }
    }
}

/// The way to the rest of a list.
pub(crate) fn more(cursor: &Value, path: &str, parameters: &[(&str, &str)]) -> Markup {
    let cursor = text(cursor, "next_cursor");
    let all: Vec<(&str, &str)> = parameters.iter().copied().chain([("cursor", cursor)]).collect();
    html! { @if !cursor.is_empty() { p class="more" { a class="button" rel="next" href=(url(path, &all)) { "Next page" } } } }
}

/// The page of a rule.
pub(crate) fn rule_url(namespace: &str, rule_id: &str) -> String {
    url("/console/rule", &[("namespace", namespace), ("id", rule_id)])
}

/// The page of a client.
pub(crate) fn client_url(namespace: &str, client_key: &str) -> String {
    url("/console/client", &[("namespace", namespace), ("key", client_key)])
}

/// A link to a rule.
pub(crate) fn rule_link(namespace: &str, rule_id: &str) -> Markup {
    html! { a class="code" href=(rule_url(namespace, rule_id)) { (rule_id) } }
}

/// A link to a client.
pub(crate) fn client_link(namespace: &str, client_key: &str) -> Markup {
    html! { a class="code" href=(client_url(namespace, client_key)) { (client_key) } }
}

/// A limit in words: `10 per 1m, burst 20`, `5,000 at once`, `2,000,000 output_tokens per month`.
pub(crate) fn limit_words(rule: &Value) -> String {
    if is_true(rule, "unlimited") {
        return "unlimited".to_owned();
    }
    let limit = member(rule, "limit");
    let counted = plain(member(rule, "meter"));
    let counted = if matches!(counted.as_str(), "" | "requests") { String::new() } else { format!(" {counted}") };
    let quota = [member(rule, "quota"), limit].into_iter().find(|quota| !member(quota, "every").is_null());
    if let Some(quota) = quota {
        let units = amount(member(quota, "amount"));
        return match text(quota, "every") {
            "never" => format!("{units}{counted} in all"),
            every => format!("{units}{counted} per {every}"),
        };
    }
    if !member(limit, "slots").is_null() {
        return format!("{} at once", amount(member(limit, "slots")));
    }
    let units = ["requests", "amount"].map(|name| member(limit, name)).into_iter().find(|units| !units.is_null());
    let units = units.map_or_else(|| "–".to_owned(), amount);
    let mut words = format!("{units}{counted} per {}", text(limit, "window"));
    let burst = plain(member(limit, "burst"));
    if !burst.is_empty() && burst != plain(member(limit, "requests")) {
        words += &format!(", burst {}", amount(member(limit, "burst")));
    }
    words
}

/// A number as people write it; anything else as it is.
fn amount(value: &Value) -> String {
    value.as_u64().map_or_else(|| plain(value), grouped)
}

/// What a rule matches, as small words.
pub(crate) fn match_words(rule: &Value) -> Markup {
    let conditions = member(rule, "match").as_object();
    let conditions: Vec<(&String, &Value)> = conditions.into_iter().flatten().collect();
    html! {
        @if conditions.is_empty() { span class="dim" { "every request" } }
        @for (name, value) in conditions {
            span class="condition" { span class="dim" { (name) } " " code { (plain(value)) } } " "
        }
    }
}

/// What was changed: each member with its old and its new value.
pub(crate) fn changes(change: &Value) -> Markup {
    const UNIMPORTANT: [&str; 4] = ["version", "updated_at", "created_at", "namespace"];
    let (before, after) = (member(change, "before"), member(change, "after"));
    let mut rows = Vec::new();
    differences("", before, after, &mut rows);
    rows.retain(|(name, _, _)| !UNIMPORTANT.contains(&name.as_str()));
    html! {
        @if rows.is_empty() { p class="dim" { "Nothing is different." } } @else {
            table class="diff" {
                @for (name, old, new) in rows {
                    tr {
                        th scope="row" { (name) }
                        td { @if old.is_empty() { span class="dim" { "–" } } @else { del { (old) } } }
                        td { @if new.is_empty() { span class="dim" { "–" } } @else { ins { (new) } } }
                    }
                }
            }
        }
    }
}

/// Members that differ, objects member by member.
fn differences(name: &str, before: &Value, after: &Value, rows: &mut Vec<(String, String, String)>) {
    if before.is_object() || after.is_object() {
        let mut names: Vec<&String> =
            [before, after].iter().filter_map(|value| value.as_object()).flat_map(|map| map.keys()).collect();
        names.sort();
        names.dedup();
        for member in names {
            let path = if name.is_empty() { member.clone() } else { format!("{name}.{member}") };
            let of = |value: &Value| value.get(member).cloned().unwrap_or_default();
            differences(&path, &of(before), &of(after), rows);
        }
    } else if plain(before) != plain(after) {
        rows.push((name.to_owned(), plain(before), plain(after)));
    }
}

/// The namespaces that a page can be narrowed to.
pub(crate) fn namespace_options(namespaces: &Value) -> Vec<&str> {
    list(namespaces, "namespaces").iter().map(|namespace| text(namespace, "namespace")).collect()
}

/// A filter by namespace, if there are several.
pub(crate) fn namespace_filter(namespaces: &Value, chosen: &str) -> Markup {
    let names = namespace_options(namespaces);
    html! {
        @if names.len() > 1 {
            select name="namespace" aria-label="Namespace" data-submit {
                option value="" { "All namespaces" }
                @for name in names { option value=(name) selected[name == chosen] { (name) } }
            }
        } @else if !chosen.is_empty() { input type="hidden" name="namespace" value=(chosen); }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NASTY: &str = "\"><script>alert(1)</script><img src=x onerror=alert(1)>'";

    #[test]
    fn limits_of_every_kind_have_words() {
        for (rule, words) in [
            (json!({ "limit": { "requests": 10, "window": "1m" } }), "10 per 1m"),
            (json!({ "limit": { "requests": 10, "window": "1m", "burst": 20 } }), "10 per 1m, burst 20"),
            (json!({ "limit": { "algorithm": "concurrency", "slots": 5000, "slot_ttl": "10s" } }), "5,000 at once"),
            (
                json!({ "meter": "output_tokens", "limit": { "amount": 90000, "window": "1m" } }),
                "90,000 output_tokens per 1m",
            ),
            (json!({ "quota": { "amount": 2000000, "every": "month" } }), "2,000,000 per month"),
            (json!({ "quota": { "amount": 5, "every": "never" }, "meter": "requests" }), "5 in all"),
            (json!({ "unlimited": true }), "unlimited"),
        ] {
            assert_eq!(limit_words(&rule), words, "{rule}");
        }
    }

    #[test]
    fn hostile_names_stay_text() {
        let rule = json!({ "match": { NASTY: [NASTY] }, "limit": { "requests": NASTY, "window": NASTY } });
        let change = json!({ "before": { NASTY: NASTY }, "after": null });
        let problem = CallProblem {
            faults: vec![crate::api::Fault { message: NASTY.into(), help: NASTY.into(), ..Default::default() }],
            ..CallProblem::new(422, NASTY, NASTY)
        };
        let parts = [
            badge(NASTY),
            rule_link(NASTY, NASTY),
            client_link(NASTY, NASTY),
            match_words(&rule),
            html! { (limit_words(&rule)) },
            changes(&change),
            trouble(&problem),
            field(NASTY, NASTY, NASTY, NASTY),
            choice(NASTY, NASTY, NASTY, &[(NASTY, NASTY)]),
            more(&json!({ "next_cursor": NASTY }), "/x", &[("a", NASTY)]),
        ];
        for part in parts {
            let text = part.into_string();
            assert!(!text.contains("<script") && !text.contains("<img"), "{text}");
        }
    }

    #[test]
    fn differences_are_told_member_by_member() {
        let change = json!({ "before": { "limit": { "requests": 2, "window": "1m" }, "version": 3 },
            "after": { "limit": { "requests": 3, "window": "1m" }, "version": 4, "mode": "shadow" } });
        let mut rows = Vec::new();
        differences("", &change["before"], &change["after"], &mut rows);
        let rows: Vec<String> = rows.iter().map(|(name, old, new)| format!("{name}: {old} {new}")).collect();
        assert_eq!(rows, ["limit.requests: 2 3", "mode:  shadow", "version: 3 4"]);
        assert_eq!(limit_words(&change["after"]), "3 per 1m");
        let large = json!({ "limit": { "requests": 50_000, "burst": 60_000, "window": "1s" } });
        assert_eq!(limit_words(&large), "50,000 per 1s, burst 60,000");
    }
}
