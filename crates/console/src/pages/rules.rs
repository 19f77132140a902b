//! The rules of every source.

use maud::{Markup, html};
use serde_json::Value;

use super::{PageResult, framed};
use crate::json::{is_true, list, member, plain, text};
use crate::layout::{Framed, NavigationEntry};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::url;
use crate::parts::{badge, empty, heading, limit_words, match_words, more, namespace_filter, rule_link};

/// Rules on a page.
const PAGE_LENGTH: &str = "50";

pub(super) async fn show(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let names = ["search", "namespace", "source"];
    let filter: Vec<(&str, &str)> = names.iter().map(|name| (*name, call.query.get(name))).collect();
    let mut asked = filter.clone();
    asked.extend([("limit", PAGE_LENGTH), ("cursor", call.query.get("cursor"))]);
    let rules = operator.api.get(&url("/v1/rules", &asked)).await?;
    let namespaces = operator.api.find("/v1/namespaces?limit=1000").await.unwrap_or_default();
    let table = table(&rules, &filter);
    if call.query.get("part") == "list" {
        return Ok(crate::response::PageResponse::of(table));
    }
    let new = url("/console/rule/edit", &[("namespace", call.query.get("namespace"))]);
    let actions = html! { @if operator.may("operator") { a class="button primary" href=(new) { "New rule" } } };
    let body = html! {
        (heading("Rules", html! { "Every rule that matches a request must let it pass." }, actions))
        form class="filters" action="/console/rules" data-list="rules" {
            input type="search" name="search" value=(call.query.get("search")) placeholder="Name or endpoint" aria-label="Find rules" maxlength="200";
            select name="source" aria-label="Source" data-submit {
                @for (value, name) in [("", "All sources"), ("database", "Database"), ("file", "File"), ("envoy", "Envoy’s files")] {
                    option value=(value) selected[value == call.query.get("source")] { (name) }
                }
            }
            (namespace_filter(&namespaces, call.query.get("namespace")))
            button class="button" { "Find" }
        }
        div id="rules" { (table) }
    };
    framed(
        operator,
        Framed { title: "Rules", section: NavigationEntry::Rules, live: None, done: call.query.get("done"), body },
    )
}

fn table(rules: &Value, filter: &[(&str, &str)]) -> Markup {
    let is_filtered = filter.iter().any(|(_, value)| !value.is_empty());
    html! {
        @if list(rules, "rules").is_empty() {
            @if is_filtered { (empty("No rule is like that.", html! { p { a href="/console/rules" { "Show all rules" } } })) }
            @else { (no_rules()) }
        } @else {
            div class="scroll" tabindex="0" role="region" aria-label="Rules" {
                table class="list" {
                    thead { tr { th { "Rule" } th { "Mode" } th { "Limit" } th { "For each" } th { "Requests" } th { "Source" } } }
                    tbody { @for rule in list(rules, "rules") { (row(rule)) } }
                }
            }
            (more(rules, "/console/rules", filter))
        }
    }
}

fn row(rule: &Value) -> Markup {
    let (namespace, location) = (text(rule, "namespace"), text(rule, "location"));
    html! {
        tr {
            td {
                (rule_link(namespace, text(rule, "rule_id")))
                @if namespace != "default" { div class="dim" { (namespace) } }
                @if !text(rule, "name").is_empty() { div class="dim" { (text(rule, "name")) } }
            }
            td { (badge(mode(rule))) }
            td class="number-words" { (limit_words(rule)) }
            td { code { (key_words(rule)) } }
            td class="words" { (match_words(rule)) }
            td { (badge(text(rule, "source"))) @if let Some(file) = location.rsplit('/').next().filter(|file| !file.is_empty()) { " " span class="dim" title=(location) { (file) } } }
        }
    }
}

/// The mode in force.
pub(super) fn mode(rule: &Value) -> &str {
    if rule.get("enabled") == Some(&Value::Bool(false)) {
        return "off";
    }
    let switched = text(rule, "mode_override.mode");
    if !switched.is_empty() {
        return switched;
    }
    Some(text(rule, "mode")).filter(|mode| !mode.is_empty()).unwrap_or("enforce")
}

/// What the limit is kept for.
pub(super) fn key_words(rule: &Value) -> String {
    let key = plain(member(rule, "key_by"));
    if key.is_empty() || is_true(rule, "unlimited") { "–".to_owned() } else { key }
}

fn no_rules() -> Markup {
    empty(
        "No rules yet: every request is allowed.",
        html! {
            p { "A rule says which requests are counted together, and how many of them may pass:" }
            pre { code { "rules:\n  - name: orders-per-user\n    match: { endpoint: \"POST /api/orders\" }\n    key_by: user_id\n    limit: { requests: 10, window: 1m }" } }
            p { a class="button primary" href="/console/rule/edit" { "Make the first one" } }
        },
    )
}
