//! Webhooks: where events are sent, a test, and what was sent.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::PageResult;
use crate::format::when;
use crate::json::{count, list, member, plain, text};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::encoded;
use crate::parts::{Confirmed, badge, field};
use crate::response::PageResponse;

/// Webhooks that are shown, each with its last deliveries.
const SHOWN: usize = 20;

/// The section of the system's page; nothing for tokens that may not see webhooks.
pub(super) async fn section(operator: &Operator<'_>, now_ms: u64) -> Markup {
    let Ok(webhooks) = operator.api.get("/v1/webhooks").await else { return html! {} };
    let mut rows = Vec::new();
    for webhook in list(&webhooks, "webhooks").iter().take(SHOWN) {
        let target = format!("/v1/webhooks/{}/deliveries?limit=5", encoded(text(webhook, "webhook_id")));
        rows.push((webhook, operator.api.find(&target).await.unwrap_or_default()));
    }
    html! {
        section {
            h2 { "Webhooks" }
            @if rows.is_empty() { p class="dim" { "None. A webhook is told of alarms and of quotas that near their end, with a signature." } }
            @for (webhook, deliveries) in &rows { (card(operator, webhook, deliveries, now_ms)) }
            (Confirmed {
                label: "New webhook…",
                about: html! { "Its secret is shown once: messages are signed with it." },
                action: "/console/webhook",
                hidden: &[],
                fields: html! { (field("URL", "url", "", "https://…")) (field("Name", "name", "", "")) },
                verb: "Make the webhook",
                is_severe: false,
            }.markup(operator))
        }
    }
}

fn card(operator: &Operator<'_>, webhook: &Value, deliveries: &Value, now_ms: u64) -> Markup {
    let hidden = [("id", text(webhook, "webhook_id"))];
    html! {
        div class="card" {
            p { strong { (text(webhook, "name")) } " " code { (text(webhook, "url")) } " " span class="dim" { (events(webhook)) } }
            @if list(deliveries, "deliveries").is_empty() { p class="dim" { "Nothing was sent to it in the last week. A test shows whether it is reached." } } @else {
                table class="list" {
                    thead { tr { th { "State" } th { "Event" } th { "Answer" } th { "Attempts" } th { "When" } } }
                    @for delivery in list(deliveries, "deliveries") {
                        tr {
                            td { (badge(text(delivery, "state"))) }
                            td { (text(delivery, "event")) }
                            td class="wrap" { (plain(member(delivery, "status"))) " " (text(delivery, "error")) }
                            td { (attempts(delivery, now_ms)) }
                            td { (when(text(delivery, "updated_at"), now_ms)) }
                        }
                    }
                }
            }
            div class="actions" {
                (Confirmed { label: "Test…", about: html! { "Sends one message now." }, action: "/console/webhook/test", hidden: &hidden, fields: html! {}, verb: "Send the test", is_severe: false }.markup(operator))
                (Confirmed { label: "Delete…", about: html! { "Nothing more is sent to it." }, action: "/console/webhook/delete", hidden: &hidden, fields: html! {}, verb: "Delete the webhook", is_severe: true }.markup(operator))
            }
        }
    }
}

fn events(webhook: &Value) -> String {
    match plain(member(webhook, "events")) {
        none if none.is_empty() => "all events".to_owned(),
        named => named,
    }
}

/// How often it was tried, and when again.
fn attempts(delivery: &Value, now_ms: u64) -> Markup {
    let (made, next) = (count(delivery, "attempts"), text(delivery, "next_at"));
    html! { (made) @if made == 1 { " attempt" } @else { " attempts" } @if !next.is_empty() { ", again " (when(next, now_ms)) } }
}

pub(super) async fn create(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let body = json!({ "url": call.form.get("url"), "name": call.form.get("name") });
    let made = operator.api.send("POST", "/v1/webhooks", &body).await?;
    Ok(call.hand_over("/console/system", text(&made, "secret")))
}

pub(super) async fn test(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    operator.api.send("POST", &format!("/v1/webhooks/{}/test", encoded(call.form.get("id"))), &Value::Null).await?;
    Ok(PageResponse::redirect("/console/system?done=webhook-tested"))
}

pub(super) async fn delete(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    operator.api.send("DELETE", &format!("/v1/webhooks/{}", encoded(call.form.get("id"))), &Value::Null).await?;
    Ok(PageResponse::redirect("/console/system?done=webhook-deleted"))
}
