//! Overrides: granting one, ending one, and lists of them.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::PageResult;
use crate::api::CallProblem;
use crate::format::{grouped, timestamp, when};
use crate::json::{count, is_true, list, text};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::{encoded, url};
use crate::parts::{Confirmed, badge, choice, client_link, field, rule_link};
use crate::response::PageResponse;

/// How long an override may be granted with one click, in hours.
const DURATIONS: [(&str, &str); 6] =
    [("1", "1 hour"), ("2", "2 hours"), ("8", "8 hours"), ("24", "1 day"), ("168", "7 days"), ("720", "30 days")];
const HOUR_MS: u64 = 3_600_000;

/// A table of overrides, each with the way to end it.
pub(super) fn table(operator: &Operator<'_>, overrides: &Value, now_ms: u64, back: &str) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Overrides" {
            table class="list" {
                thead { tr { th { "Client" } th { "Rule" } th { "Limit" } th { "Until" } th { "Reason" } th { span class="hidden" { "Actions" } } } }
                tbody {
                    @for entry in list(overrides, "overrides") {
                        @let namespace = text(entry, "namespace");
                        tr {
                            td { (client_link(namespace, text(entry, "client_key"))) }
                            td { @if text(entry, "rule_id") == "*" { "all rules" } @else { (rule_link(namespace, text(entry, "rule_id"))) } }
                            td { @if is_true(entry, "unlimited") { "unlimited" } @else { (grouped(count(entry, "max_requests"))) @if count(entry, "burst_size") > 0 { ", burst " (grouped(count(entry, "burst_size"))) } } }
                            td { (state(entry, now_ms)) " " (when(text(entry, "valid_until"), now_ms)) }
                            td class="wrap" { (text(entry, "reason")) }
                            td {
                                @if !text(entry, "location").is_empty() { span class="dim" { (text(entry, "location")) } }
                                @else if operator.may("operator") && is_open(entry, now_ms) { (end_form(operator, entry, back)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn is_open(entry: &Value, now_ms: u64) -> bool {
    crate::format::millis(text(entry, "valid_until")).is_none_or(|until| until > now_ms)
}

fn state(entry: &Value, now_ms: u64) -> Markup {
    let begins = crate::format::millis(text(entry, "valid_from")).unwrap_or(0);
    badge(if !is_open(entry, now_ms) {
        "expired"
    } else if begins > now_ms {
        "scheduled"
    } else {
        "active"
    })
}

fn end_form(operator: &Operator<'_>, entry: &Value, back: &str) -> Markup {
    Confirmed {
        label: "End…",
        about: html! { "The rule’s own limit holds again at once." },
        action: "/console/override/end",
        hidden: &[("namespace", text(entry, "namespace")), ("id", text(entry, "override_id")), ("back", back)],
        fields: html! {},
        verb: "End the override",
        is_severe: true,
    }
    .markup(operator)
}

/// The form that grants one. `rules` are those to choose from; a client that is given is not asked for.
pub(super) fn grant_form(operator: &Operator<'_>, namespace: &str, client: &str, rules: &[&str], back: &str) -> Markup {
    let mut options: Vec<(&str, &str)> = rules.iter().map(|rule| (*rule, *rule)).collect();
    options.push(("*", "All rules"));
    let mut hidden = vec![("namespace", namespace), ("back", back)];
    if !client.is_empty() {
        hidden.push(("client_key", client));
    }
    Confirmed {
        label: "Grant an override…",
        about: html! { "Another limit for one client, until a time. It is in force on every node within two seconds." },
        action: "/console/override",
        hidden: &hidden,
        fields: html! {
            @if client.is_empty() { (field("Client", "client_key", "", "such as user:42, key:abc, ip:192.0.2.1, org:acme")) }
            (choice("Rule", "rule_id", "", &options))
            (field("Requests", "max_requests", "", "per window of the rule; empty for unlimited"))
            (choice("For", "hours", "2", &DURATIONS))
            (field("Reason", "reason", "", "who asked, and a ticket: it is in the audit"))
        },
        verb: "Grant it",
        is_severe: false,
    }
    .markup(operator)
}

pub(super) async fn create(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let form = &call.form;
    let mut body = Map::new();
    for name in ["client_key", "rule_id", "reason"] {
        body.insert(name.to_owned(), form.get(name).into());
    }
    match form.get("max_requests").replace([',', ' '], "").as_str() {
        "" => drop(body.insert("unlimited".to_owned(), true.into())),
        digits => {
            let requests: u64 = digits.parse().map_err(|_| {
                CallProblem::new(422, "bad_number", "Requests is a whole number, or empty for unlimited.")
            })?;
            body.insert("max_requests".to_owned(), requests.into());
        }
    }
    let until = call.now_ms() + form.number("hours").unwrap_or(2).min(8760) * HOUR_MS;
    body.insert("valid_until".to_owned(), timestamp(until).into());
    let target = url("/v1/overrides", &[("namespace", form.get("namespace"))]);
    operator.api.send("POST", &target, &Value::Object(body)).await?;
    Ok(back(call, "override-created"))
}

pub(super) async fn end(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let path = format!("/v1/overrides/{}/end", encoded(call.form.get("id")));
    operator.api.send("POST", &url(&path, &[("namespace", call.form.get("namespace"))]), &Value::Null).await?;
    Ok(back(call, "override-ended"))
}

/// Back to the page of the form: the rule or the client that it names.
pub(super) fn back(call: &PageCall<'_>, done: &str) -> PageResponse {
    let namespace = call.form.get("namespace");
    let (path, name, value) = match call.form.get("back").split_once(':') {
        Some(("rule", id)) => ("/console/rule", "id", id),
        Some(("client", key)) => ("/console/client", "key", key),
        _ => ("/console/rules", "", ""),
    };
    PageResponse::redirect(url(path, &[("namespace", namespace), (name, value), ("done", done)]))
}
