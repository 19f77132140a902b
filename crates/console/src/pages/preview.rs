//! What other limits would have refused of the requests that were recorded: of one rule in full, of several in a line each.

use maud::{Markup, html};
use serde_json::{Map, Value, json};

use crate::api::CallProblem;
use crate::chart::meter;
use crate::format::grouped;
use crate::json::{count, list, member, text};
use crate::operator::Operator;
use crate::parts::{client_link, rule_link};

/// Rules that are tried in one review.
const RULES_MAX: usize = 20;

/// Tries the limit of a rule on the requests of a range.
pub(super) async fn ask(
    operator: &Operator<'_>,
    namespace: &str,
    id: &str,
    limit: &Value,
    range: &str,
) -> Result<Value, CallProblem> {
    let known = ["requests", "window", "burst"]
        .iter()
        .filter_map(|name| limit.get(name).map(|value| ((*name).to_owned(), value.clone())));
    let limit: Map<String, Value> = known.filter(|(_, value)| !value.is_null()).collect();
    let body = json!({ "namespace": namespace, "rule": id, "limit": limit, "range": range });
    operator.api.send("POST", "/v1/preview", &body).await
}

/// What the changed rules of a review would have done in the last hour, above the button that saves them.
pub(super) async fn of_changes(operator: &Operator<'_>, namespace: &str, changes: &[Value]) -> Markup {
    let rules: Vec<&Value> = changes.iter().filter(|change| has_limit(change)).collect();
    let mut tried = Vec::new();
    for change in rules.iter().take(RULES_MAX) {
        let id = text(change, "id");
        tried.push((*change, ask(operator, namespace, id, member(change, "after.limit"), "1h").await));
    }
    match tried.as_slice() {
        [] => html! {},
        [(change, Ok(preview))] => html! {
            section class="card" id="preview" { h2 { "In the last hour" } (effect(namespace, preview)) (untried(&[change])) }
        },
        [(_, Err(problem))] => html! { p class="note" id="preview" { (not_tried(problem)) } },
        several => html! {
            section class="card" id="preview" {
                h2 { "In the last hour" }
                (table(namespace, several))
                @if rules.len() > RULES_MAX { p class="dim" { "The first " (RULES_MAX) " of " (rules.len()) " rules were tried." } }
                (untried(&rules))
            }
        },
    }
}

/// True for a rule that goes on to be one, and has a limit that renews by time.
fn has_limit(change: &Value) -> bool {
    text(change, "kind") == "rule" && member(change, "after.limit").is_object()
}

/// Records know who met the rule as it is: another match or key has not been met by anyone.
fn untried(changes: &[&Value]) -> Markup {
    let differs = |change: &&Value, name: &str| {
        member(change, "before").is_object()
            && member(change, &format!("before.{name}")) != member(change, &format!("after.{name}"))
    };
    let is_untried = changes.iter().any(|change| differs(change, "match") || differs(change, "key_by"));
    html! { @if is_untried { p class="dim" { "Only limits are tried: what another match or key would meet is not recorded." } } }
}

fn not_tried(problem: &CallProblem) -> Markup {
    html! {
        @if problem.status == 404 {
            "Nothing of this rule is recorded yet, so it cannot be tried on the last hour. In mode " code { "shadow" } " it counts without refusing."
        } @else { "It could not be tried on the last hour: " (problem.detail) }
    }
}

fn table(namespace: &str, tried: &[(&Value, Result<Value, CallProblem>)]) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Effect by rule" {
            table class="list" {
                thead { tr { th { "Rule" } th class="number" { "Requests" } th class="number" { "Refused then" } th class="number" { "With this change" } th class="number" { "Clients refused" } } }
                tbody {
                    @for (change, preview) in tried {
                        tr {
                            td { (rule_link(namespace, text(change, "id"))) }
                            @match preview {
                                Ok(preview) => {
                                    td class="number" { (grouped(count(preview, "requests"))) }
                                    td class="number" { (grouped(count(preview, "refused_then"))) }
                                    td class="number" { (spread(preview)) }
                                    td class="number" { (grouped(count(preview, "refused_clients"))) }
                                }
                                Err(problem) => { td class="wrap dim" colspan="4" { (not_tried(problem)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A preview in a sentence and by client.
pub(super) fn effect(namespace: &str, preview: &Value) -> Markup {
    let (requests, then) = (count(preview, "requests"), count(preview, "refused_then"));
    html! {
        p class="sentence" { strong { (sentence(preview)) } }
        dl class="facts" {
            dt { "Requests recorded" } dd { (grouped(requests)) " of " (clients(count(preview, "clients"))) }
            dt { "Refused then" } dd { (meter(then, requests, "bad")) (grouped(then)) }
            dt { "Refused with this limit" } dd { (meter(count(preview, "refused_max"), requests, "bad")) (spread(preview)) }
        }
        @if count(preview, "unattributed") > 0 { p class="dim" { (grouped(count(preview, "unattributed"))) " more requests are left out: their clients are too light to be recorded one by one." } }
        @if !list(preview, "items").is_empty() {
            div class="scroll" tabindex="0" role="region" aria-label="Effect by client" {
                table class="list" {
                    thead { tr { th { "Client" } th class="number" { "Requests" } th class="number" { "Refused then" } th class="number" { "With this limit" } } }
                    tbody {
                        @for item in list(preview, "items") {
                            tr {
                                td { (client_link(namespace, text(item, "client"))) }
                                td class="number" { (grouped(count(item, "requests"))) }
                                td class="number" { (grouped(count(item, "refused_then"))) }
                                td class="number" { (spread(item)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn sentence(preview: &Value) -> String {
    let (requests, then) = (grouped(count(preview, "requests")), grouped(count(preview, "refused_then")));
    let of = match count(preview, "refused_clients") {
        0 => String::new(),
        refused => format!(", of {}", clients(refused)),
    };
    format!("This limit would have refused {} of {requests} requests{of}. {then} were refused.", spread(preview))
}

fn clients(number: u64) -> String {
    if number == 1 { "1 client".to_owned() } else { format!("{} clients", grouped(number)) }
}

/// The least and the most that would be refused: records do not tell where in a step a request came.
fn spread(effect: &Value) -> String {
    let (least, most) = (count(effect, "refused_min"), count(effect, "refused_max"));
    if least == most { grouped(least) } else { format!("{} to {}", grouped(least.min(most)), grouped(most.max(least))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_is_a_sentence() {
        let preview = json!({ "requests": 48000, "refused_then": 3, "refused_min": 310, "refused_max": 312, "refused_clients": 7 });
        let expected = "This limit would have refused 310 to 312 of 48,000 requests, of 7 clients. 3 were refused.";
        assert_eq!(sentence(&preview), expected);
        let none = json!({ "requests": 5, "refused_clients": 0 });
        assert_eq!(sentence(&none), "This limit would have refused 0 of 5 requests. 0 were refused.");
    }

    #[test]
    fn rules_with_a_limit_are_tried_and_what_is_not_is_said() {
        let changed = json!({ "kind": "rule", "id": "a", "before": { "match": { "tier": "free" }, "limit": {} },
            "after": { "match": { "tier": "paid" }, "limit": { "requests": 1 } } });
        assert!(has_limit(&changed) && untried(&[&changed]).into_string().contains("Only limits are tried"));
        let deleted = json!({ "kind": "rule", "id": "a", "before": { "limit": {} }, "after": null });
        let quota = json!({ "kind": "rule", "id": "a", "before": null, "after": { "quota": {} } });
        assert!(
            !has_limit(&deleted)
                && !has_limit(&quota)
                && !has_limit(&json!({ "kind": "client", "after": { "limit": {} } }))
        );
        let new = json!({ "kind": "rule", "before": null, "after": { "match": {}, "limit": {} } });
        assert_eq!(untried(&[&new]).into_string(), "");
    }
}
