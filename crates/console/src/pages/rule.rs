//! One rule: its traffic against its limit, who is closest, who was refused, its overrides and its history.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::rule_text::text_of;
use super::rules::{key_words, mode};
use super::{PageResult, audit, framed, overrides, traffic};
use crate::json::{list, number, text};
use crate::layout::{Framed, NavigationEntry};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::{encoded, url};
use crate::parts::{Confirmed, badge, field, heading, limit_words, match_words, rule_url};
use crate::response::PageResponse;

/// Overrides and changes on the page.
const SHOWN: &str = "20";

pub(super) async fn show(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let (namespace, id) = (call.query.given("namespace").unwrap_or(operator.home()), call.query.get("id"));
    let rule = operator.api.get(&url(&format!("/v1/rules/{}", encoded(id)), &[("namespace", namespace)])).await?;
    let of_rule = |path: &str| url(path, &[("namespace", namespace), ("rule_id", id), ("limit", SHOWN)]);
    let (held, now_ms) = (operator.api.find(&of_rule("/v1/overrides")).await.unwrap_or_default(), call.now_ms());
    let history = url("/v1/audit", &[("namespace", namespace), ("id", id), ("limit", SHOWN)]);
    let history = operator.api.find(&history).await.unwrap_or_default();
    let live = [("page", "rule"), ("namespace", namespace), ("id", id), ("range", call.query.get("range"))];
    let live = url("/console/live", &live);
    let back = format!("rule:{id}");
    let body = html! {
        (heading(id, about(&rule), actions(operator, &rule)))
        @if let Some(warnings) = Some(list(&rule, "warnings")).filter(|warnings| !warnings.is_empty()) {
            @for warning in warnings { p class="note warn" { strong { (text(warning, "message")) } " " (text(warning, "help")) } }
        }
        div id="traffic" class="stack" { (traffic::of_rule(operator, call, namespace, id, &rule).await) }
        section {
            h2 { "Overrides" }
            @if list(&held, "overrides").is_empty() { p class="dim" { "No client has other numbers of this rule." } }
            @else { (overrides::table(operator, &held, now_ms, &back)) }
            @if operator.may("operator") { (overrides::grant_form(operator, namespace, "", &[id], &back)) }
        }
        div class="columns" {
            section { h2 { "Text" } pre class="source" { code { (text_of(&rule)) } } }
            section {
                h2 { "History" }
                @if list(&history, "audit").is_empty() { p class="dim" { "It was not changed here." } }
                @else { (audit::entries(operator, &history, now_ms)) }
            }
        }
    };
    framed(
        operator,
        Framed { title: id, section: NavigationEntry::Rules, live: Some(live), done: call.query.get("done"), body },
    )
}

/// The parts that move.
pub(super) async fn live(call: &PageCall<'_>, operator: &Operator<'_>) -> Vec<(&'static str, Markup)> {
    let (namespace, id) = (call.query.given("namespace").unwrap_or(operator.home()), call.query.get("id"));
    let target = url(&format!("/v1/rules/{}", encoded(id)), &[("namespace", namespace)]);
    let Some(rule) = operator.api.find(&target).await else { return Vec::new() };
    vec![("traffic", traffic::of_rule(operator, call, namespace, id, &rule).await)]
}

fn about(rule: &Value) -> Markup {
    let location = text(rule, "location");
    html! {
        (badge(mode(rule))) " " (badge(text(rule, "source"))) " "
        strong { (limit_words(rule)) } " for each " code { (key_words(rule)) } " · " (match_words(rule))
        @if !location.is_empty() { span class="dim" { " · " (location) } }
        @if !text(rule, "mode_override.reason").is_empty() { span class="dim" { " · switched: " (text(rule, "mode_override.reason")) } }
    }
}

fn actions(operator: &Operator<'_>, rule: &Value) -> Markup {
    let (namespace, id) = (text(rule, "namespace"), text(rule, "rule_id"));
    let hidden = [("namespace", namespace), ("id", id)];
    let is_stored = text(rule, "source") == "database" && number(rule, "version").is_some();
    let other = if mode(rule) == "enforce" { "shadow" } else { "enforce" };
    let consequence = match other {
        "shadow" => "It goes on counting, and refuses nothing.",
        _ => "It refuses what is over its limit, from now on.",
    };
    html! {
        a class="button" href=(url("/console/what-if", &[("namespace", namespace), ("rule", id)])) { "What if" }
        @if operator.may("on-call") {
            (Confirmed {
                label: if other == "shadow" { "Shadow…" } else { "Enforce…" },
                about: html! { (consequence) " The rule’s text stays as it is." },
                action: "/console/rule/mode",
                hidden: &[hidden[0], hidden[1], ("mode", other)],
                fields: html! { (field("Reason", "reason", "", "it is in the audit")) },
                verb: if other == "shadow" { "Switch to shadow" } else { "Switch to enforce" },
                is_severe: false,
            }.markup(operator))
            @if rule.get("mode_override").is_some() {
                (Confirmed {
                    label: "Own mode…",
                    about: html! { "The rule’s own mode holds again." },
                    action: "/console/rule/mode",
                    hidden: &[hidden[0], hidden[1], ("mode", "")],
                    fields: html! {},
                    verb: "Switch back",
                    is_severe: false,
                }.markup(operator))
            }
        }
        @if is_stored && operator.may("operator") {
            a class="button primary" href=(url("/console/rule/edit", &hidden)) { "Edit" }
            (Confirmed {
                label: "Delete…",
                about: html! { "Its overrides and grants go with it." },
                action: "/console/rule/delete",
                hidden: &hidden,
                fields: html! {},
                verb: "Delete the rule",
                is_severe: true,
            }.markup(operator))
        }
    }
}

/// Switches the mode without touching the rule; without a mode, switches back.
pub(super) async fn set_mode(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let (namespace, id) = (call.form.get("namespace"), call.form.get("id"));
    let target = url(&format!("/v1/rules/{}/mode", encoded(id)), &[("namespace", namespace)]);
    match call.form.get("mode") {
        "" => operator.api.send("DELETE", &target, &Value::Null).await?,
        mode => operator.api.send("PUT", &target, &json!({ "mode": mode, "reason": call.form.get("reason") })).await?,
    };
    Ok(PageResponse::redirect(format!("{}&done=rule-mode", rule_url(namespace, id))))
}

pub(super) async fn delete(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let path = format!("/v1/rules/{}", encoded(call.form.get("id")));
    operator.api.send("DELETE", &url(&path, &[("namespace", call.form.get("namespace"))]), &Value::Null).await?;
    Ok(PageResponse::redirect("/console/rules?done=rule-deleted"))
}
