//! Penalties: clients that were refused so often that they are refused altogether for a while; and lifting them.

use maud::{Markup, html};
use serde_json::Value;

use super::PageResult;
use crate::format::when;
use crate::json::{list, text};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::{encoded, url};
use crate::parts::{Confirmed, client_link, rule_link};

/// The penalties of a client; nothing where it has none.
pub(super) async fn of_client(operator: &Operator<'_>, namespace: &str, key: &str, now_ms: u64, back: &str) -> Markup {
    let asked = url("/v1/penalties", &[("namespace", namespace), ("client_key", key)]);
    let penalties = operator.api.find(&asked).await.unwrap_or_default();
    html! {
        @for penalty in list(&penalties, "penalties") {
            div class="note bad" role="status" {
                p {
                    strong { "Refused altogether" } " by " (rule_link(namespace, text(penalty, "rule_id")))
                    ": since " (when(text(penalty, "begun_at"), now_ms)) ", until " (when(text(penalty, "ends_at"), now_ms)) "."
                }
                @if operator.may("operator") { (lift_form(operator, penalty, back)) }
            }
        }
    }
}

/// Penalties that the overview shows.
const SHOWN: &str = "20";

/// Every client that is refused altogether now; nothing where there is none.
pub(super) async fn section(operator: &Operator<'_>, namespace: &str, now_ms: u64) -> Markup {
    let asked = url("/v1/penalties", &[("namespace", namespace), ("limit", SHOWN)]);
    let penalties = operator.api.find(&asked).await.unwrap_or_default();
    html! {
        @if !list(&penalties, "penalties").is_empty() {
            section {
                h2 { "Refused altogether (penalties)" }
                div class="scroll" tabindex="0" role="region" aria-label="Penalties" {
                    table class="list" {
                        thead { tr { th { "Client" } th { "Rule" } th { "Since" } th { "Until" } th { span class="hidden" { "Actions" } } } }
                        tbody {
                            @for penalty in list(&penalties, "penalties") {
                                @let (own, client) = (text(penalty, "namespace"), text(penalty, "client_key"));
                                tr {
                                    td { (client_link(own, client)) }
                                    td { (rule_link(own, text(penalty, "rule_id"))) }
                                    td { (when(text(penalty, "begun_at"), now_ms)) }
                                    td { (when(text(penalty, "ends_at"), now_ms)) }
                                    td { @if operator.may("operator") { (lift_form(operator, penalty, &format!("client:{client}"))) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn lift_form(operator: &Operator<'_>, penalty: &Value, back: &str) -> Markup {
    Confirmed {
        label: "Lift the penalty…",
        about: html! { "The client may ask again at once, and its next penalty is its first again." },
        action: "/console/penalty/lift",
        hidden: &[("namespace", text(penalty, "namespace")), ("id", text(penalty, "penalty_id")), ("back", back)],
        fields: html! {},
        verb: "Lift it",
        is_severe: false,
    }
    .markup(operator)
}

pub(super) async fn lift(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let path = format!("/v1/penalties/{}", encoded(call.form.get("id")));
    let target = url(&path, &[("namespace", call.form.get("namespace"))]);
    operator.api.send("DELETE", &target, &Value::Null).await?;
    Ok(super::overrides::back(call, "penalty-lifted"))
}
