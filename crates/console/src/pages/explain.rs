//! Explain: which rules a request meets, why, and what each one decides. Nothing is charged; the URL can be shared.

use maud::{Markup, html};
use serde_json::Value;

use super::{PageResult, explain_request, framed};
use crate::api::CallProblem;
use crate::chart::meter;
use crate::format::{duration, grouped};
use crate::json::{count, is_true, list, member, plain, text};
use crate::layout::{Framed, NavigationEntry};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parts::{badge, heading, limit_words, rule_link, trouble};

const EXAMPLES: [&str; 3] = [
    "user_id=42 tier=free POST /api/orders",
    "curl -X POST https://api.example.com/api/orders -H 'X-Api-Key: abc'",
    r#"{"client_key":"user:42","endpoint":"POST /api/orders","cost":5}"#,
];

pub(super) async fn show(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let (namespace, source) = (call.query.given("namespace").unwrap_or(operator.home()), call.query.raw("request"));
    let explained = match source.trim() {
        "" => None,
        _ => Some(explain(operator, namespace, source).await),
    };
    let body = html! {
        (heading("Explain", html! { "Why is a request allowed or refused? Nothing is charged, and the address of this page can be shared." }, html! {}))
        form action="/console/explain" class="explain" {
            textarea name="request" rows="3" spellcheck="false" aria-label="Request" placeholder=(EXAMPLES[0]) maxlength="8000" { (source) }
            div class="actions" {
                label class="inline" { "Namespace " input name="namespace" value=(namespace) maxlength="200" size="12"; }
                button class="button primary" { "Explain" }
            }
        }
        @match &explained {
            None => {
                div class="empty" {
                    p { strong { "Type a request, or paste one:" } }
                    ul class="examples" {
                        @for example in EXAMPLES {
                            li { a class="code" href=(crate::parameters::url("/console/explain", &[("request", example)])) { (example) } }
                        }
                    }
                    p class="dim" { "Of a curl line, the method, the path and the fields X-Api-Key, X-User-Id and X-Forwarded-For are taken; Authorization is not." }
                }
            }
            Some(Err(problem)) => { (trouble(problem)) }
            Some(Ok(explained)) => { (answer(namespace, explained)) }
        }
    };
    framed(operator, Framed { title: "Explain", section: NavigationEntry::Explain, live: None, done: "", body })
}

async fn explain(operator: &Operator<'_>, namespace: &str, source: &str) -> Result<Value, CallProblem> {
    let mut request = explain_request::read(source).map_err(|detail| CallProblem::new(422, "bad_request", &detail))?;
    request.entry("namespace").or_insert(namespace.into());
    operator.api.explain(&Value::Object(request)).await
}

fn answer(namespace: &str, explained: &Value) -> Markup {
    let decision = member(explained, "decision");
    let is_allowed = is_true(decision, "allowed");
    let (mut applies, others): (Vec<&Value>, Vec<&Value>) =
        list(explained, "rules").iter().partition(|rule| is_true(rule, "applies"));
    applies.sort_by_key(|rule| rule.get("allowed") != Some(&Value::Bool(false))); // what refuses comes first
    html! {
        section class={ "verdict " (if is_allowed { "good" } else { "bad" }) } role="status" {
            p class="figure" { @if is_allowed { "Allowed" } @else { "Denied" } }
            p {
                @if let Some(rule) = Some(text(decision, "rule")).filter(|rule| !rule.is_empty()) { "by " (rule_link(namespace, rule)) ", " }
                @else { "no rule applies, " }
                @if is_allowed { (plain(member(decision, "remaining"))) " left" }
                @else if member(decision, "retry_after_ms").is_null() { "never: it asks for more than the limit" }
                @else { "retry after " strong { (duration(count(decision, "retry_after_ms"))) } }
                span class="dim" { " · generation " (count(decision, "generation")) " · decided by " (text(decision, "mode")) }
            }
        }
        @for rule in &applies { (applied(namespace, rule)) }
        @if !others.is_empty() {
            details open[applies.is_empty()] class="others" {
                summary { (others.len()) @if others.len() == 1 { " rule does" } @else { " rules do" } " not apply" }
                table class="list" {
                    tbody { @for rule in &others { tr { td { (rule_link(namespace, text(rule, "name"))) } td class="wrap" { (text(rule, "because")) } } } }
                }
            }
        }
        @if count(explained, "omitted") > 0 { p class="dim" { (count(explained, "omitted")) " further rules are not shown." } }
    }
}

fn applied(namespace: &str, rule: &Value) -> Markup {
    let is_denied = rule.get("allowed") == Some(&Value::Bool(false));
    let state = match (is_denied, text(rule, "mode")) {
        (true, "shadow") => "would deny",
        (true, _) => "denied",
        (false, _) => "allowed",
    };
    let (used, left) = (count(rule, "used_before"), count(rule, "remaining_before"));
    let key: Vec<String> =
        list(rule, "key").iter().map(|part| format!("{}={}", text(part, "attribute"), text(part, "value"))).collect();
    html! {
        section class="card considered" {
            h2 { (rule_link(namespace, text(rule, "name"))) " " (badge(state)) " " (badge(text(rule, "source"))) @if text(rule, "mode") != "enforce" { " " (badge(text(rule, "mode"))) } }
            dl class="facts" {
                dt { "Limit" }
                dd { (limit_words(rule)) " " span class="dim" { (text(rule, "limit.algorithm")) } }
                dt { "Counted for" }
                dd { @if key.is_empty() { "all requests together" } @else { code { (key.join(", ")) } } }
                @if !is_true(rule, "unlimited") {
                    dt { "Before this request" }
                    dd { (meter(used, used + left, if is_denied { "bad" } else { "good" })) (grouped(used)) " used, " (grouped(left)) " left" }
                }
                dt { "This request" }
                dd {
                    "takes " (grouped(count(rule, "charged")))
                    @if is_denied { ": " @if member(rule, "retry_after_ms").is_null() { "more than it can ever have" } @else { "passes in " strong { (duration(count(rule, "retry_after_ms"))) } } }
                    @else { ", leaves " (grouped(count(rule, "remaining"))) }
                }
                @if member(rule, "override").is_object() {
                    dt { "Override" }
                    dd { (badge("override")) " for " (text(rule, "override.client_key")) ", until " (text(rule, "override.valid_until")) " " span class="dim" { (text(rule, "override.reason")) } }
                }
                dt { "While the store is away" }
                dd { (text(rule, "on_fail")) }
            }
        }
    }
}
