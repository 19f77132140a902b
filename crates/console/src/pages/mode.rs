//! The kill switch.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::PageResult;
use crate::format::when;
use crate::json::text;
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parts::{Confirmed, badge};
use crate::response::PageResponse;

const MODES: [(&str, &str, &str); 3] = [
    ("enforce", "Enforce", "Limits hold: what a rule refuses is refused."),
    ("shadow", "Shadow", "Everything is counted and nothing is refused, on every node, at once."),
    ("off", "Off", "Nothing is counted and everything is allowed. Only for admins."),
];

/// The mode in force, and the way to another one.
pub(super) fn card(operator: &Operator<'_>, mode: &Value, now_ms: u64) -> Markup {
    let current = text(mode, "mode");
    let may = |name: &str| {
        operator.may("on-call") && operator.sees_all() && ((name != "off" && current != "off") || operator.may("admin"))
    };
    html! {
        section class={ "card mode " (current) } aria-label="Mode" {
            p class="label" { "Mode" }
            p class="figure" { (badge(current)) }
            p class="dim" {
                @if text(mode, "since").starts_with("1970") { "as it was started" } @else { "since " (when(text(mode, "since"), now_ms)) }
                @if text(mode, "scope") == "node" { ", on this node only" }
            }
            div class="actions" {
                @for (name, label, about) in MODES {
                    @if name != current && may(name) {
                        (Confirmed {
                            label: &format!("{label}…"),
                            about: html! { (about) },
                            action: "/console/mode",
                            hidden: &[("mode", name)],
                            fields: html! {},
                            verb: &format!("Switch to {name}"),
                            is_severe: name == "off",
                        }.markup(operator))
                    }
                }
            }
        }
    }
}

pub(super) async fn set(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    operator.api.send("PUT", "/v1/mode", &json!({ "mode": call.form.get("mode") })).await?;
    Ok(PageResponse::redirect("/?done=mode-set"))
}
