//! Single decisions: why a request was refused, by the id that its caller was given.

use maud::{Markup, html};
use serde_json::Value;

use super::{PageResult, framed};
use crate::format::{duration, grouped, when};
use crate::json::{count, is_true, list, member, number, plain, text};
use crate::layout::{Framed, NavigationEntry};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::{encoded, url};
use crate::parts::{badge, client_link, heading, rule_link};

/// A table of decisions; without the client where all are of one.
pub(super) fn table(decisions: &Value, now_ms: u64, with_client: bool) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Decisions" {
            table class="list" {
                thead { tr { th { "When" } th { "Outcome" } @if with_client { th { "Client" } } th { "Rule" } th class="number" { "Used" } th class="number" { "Retry after" } } }
                tbody { @for decision in list(decisions, "decisions") { (row(decision, now_ms, with_client)) } }
            }
        }
    }
}

fn row(decision: &Value, now_ms: u64, with_client: bool) -> Markup {
    let namespace = text(decision, "namespace");
    html! {
        tr {
            td { a href=(url("/console/decision", &[("id", text(decision, "decision_id"))])) { (when(text(decision, "at"), now_ms)) } }
            td { (badge(outcome(decision))) }
            @if with_client { td { (client_link(namespace, text(decision, "client"))) } }
            td { @if !text(decision, "rule").is_empty() { (rule_link(namespace, text(decision, "rule"))) } }
            td class="number" { @if let Some(used) = number(decision, "used") { (grouped(used)) span class="dim" { " / " (grouped(count(decision, "capacity"))) } } }
            td class="number" { (retry_after(decision)) }
        }
    }
}

fn outcome(decision: &Value) -> &'static str {
    match (is_true(decision, "allowed"), is_true(decision, "shadow_denied")) {
        (false, _) => "denied",
        (true, true) => "would deny",
        (true, false) => "allowed",
    }
}

fn retry_after(decision: &Value) -> String {
    match number(decision, "retry_after_ms") {
        Some(ms) => duration(ms),
        None if is_true(decision, "allowed") => "–".to_owned(),
        None => "never".to_owned(),
    }
}

/// One decision: why, since when, until when.
pub(super) async fn show(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let decision = operator.api.get(&format!("/v1/decisions/{}", encoded(call.query.get("id")))).await?;
    let (namespace, now_ms, is_allowed) = (text(&decision, "namespace"), call.now_ms(), is_true(&decision, "allowed"));
    let about = html! { "Decision " code { (text(&decision, "decision_id")) } " of node " code { (text(&decision, "node")) } ", " (when(text(&decision, "at"), now_ms)) };
    let body = html! {
        (heading("Why", about, html! {}))
        section class={ "verdict " (if is_allowed { "good" } else { "bad" }) } {
            p class="figure" { @if is_allowed { "Allowed" } @else { "Denied" } }
            p {
                (client_link(namespace, text(&decision, "client")))
                @if !text(&decision, "rule").is_empty() { ", by " (rule_link(namespace, text(&decision, "rule"))) }
                @if !is_allowed { ", retry after " strong { (retry_after(&decision)) } }
            }
            @if !text(&decision, "limited_since").is_empty() { p { "This client is refused by the rule since " strong { (when(text(&decision, "limited_since"), now_ms)) } "." } }
        }
        @for ruling in list(&decision, "rules") { (ruling_card(namespace, ruling, now_ms)) }
        p class="dim" { "Cost " (plain(member(&decision, "cost"))) ", generation " (count(&decision, "generation")) ", decided by " (text(&decision, "mode")) "." }
    };
    framed(operator, Framed { title: "Why", section: NavigationEntry::None, live: None, done: "", body })
}

fn ruling_card(namespace: &str, ruling: &Value, now_ms: u64) -> Markup {
    let state = match (is_true(ruling, "allowed"), is_true(ruling, "shadow")) {
        (true, _) => "allowed",
        (false, true) => "would deny",
        (false, false) => "denied",
    };
    html! {
        section class="card considered" {
            h2 { (rule_link(namespace, text(ruling, "rule"))) " " (badge(state)) @if is_true(ruling, "override") { " " (badge("override")) } @if is_true(ruling, "deciding") { " " (badge("decided")) } }
            dl class="facts" {
                @if let Some(limit) = number(ruling, "limit") {
                    dt { "Limit" }
                    dd { (grouped(limit)) @if let Some(window) = number(ruling, "window_ms") { " per " (duration(window)) } @if is_true(ruling, "override") { span class="dim" { " instead of " (count(ruling, "rule_limit")) } } }
                }
                @if let Some(used) = number(ruling, "used") { dt { "Used then" } dd { (grouped(used)) " of " (grouped(count(ruling, "capacity"))) ", " (grouped(count(ruling, "remaining"))) " left" } }
                @if !text(ruling, "limited_since").is_empty() { dt { "Refuses since" } dd { (when(text(ruling, "limited_since"), now_ms)) } }
                @if !text(ruling, "reset_at").is_empty() { dt { "Empty again" } dd { (when(text(ruling, "reset_at"), now_ms)) } }
            }
        }
    }
}
