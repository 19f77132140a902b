//! What if: another limit of a rule over the requests that were recorded, in all and by client.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::{PageResult, framed, preview, traffic};
use crate::api::CallProblem;
use crate::json::{list, member, number, plain, text};
use crate::layout::{Framed, NavigationEntry};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::{encoded, url};
use crate::parts::{empty, heading, limit_words, rule_link, trouble};
use crate::response::PageResponse;

/// Rules to choose from.
const CHOICES: &str = "200";
/// The slider ends at so many times the present limit.
const SLIDER_TIMES: u64 = 5;

pub(super) async fn show(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let (namespace, id) = (call.query.given("namespace").unwrap_or(operator.home()), call.query.get("rule"));
    if id.is_empty() {
        return choose(operator, namespace).await;
    }
    let rule = operator.api.get(&url(&format!("/v1/rules/{}", encoded(id)), &[("namespace", namespace)])).await?;
    let now = number(&rule, "limit.requests").unwrap_or(0);
    let limit = wanted(call, &rule);
    let effect = preview::ask(operator, namespace, id, &limit, traffic::range(call)).await;
    let effect = effect_markup(namespace, &effect);
    if call.query.get("part") == "list" {
        return Ok(PageResponse::of(effect));
    }
    let requests = number(&limit, "requests").unwrap_or(now);
    let body = html! {
        (heading("What if", html! { (rule_link(namespace, id)) " is " strong { (limit_words(&rule)) } ". What would another limit have refused?" }, html! {
            a class="button" href="/console/what-if" { "Another rule" }
            @if operator.may("operator") && text(&rule, "source") == "database" { a class="button" href=(url("/console/rule/edit", &[("namespace", namespace), ("id", id)])) { "Edit the rule" } }
        }))
        form class="card what-if" action="/console/what-if" data-list="effect" {
            input type="hidden" name="namespace" value=(namespace);
            input type="hidden" name="rule" value=(id);
            div class="presets" {
                @for (label, times_ten) in [("half", 5u64), ("as it is", 10), ("double", 20), ("five times", 50)] {
                    @let value = (now * times_ten / 10).max(1).to_string();
                    a class="button" href=(url("/console/what-if", &[("namespace", namespace), ("rule", id), ("requests", &value), ("range", traffic::range(call))])) { (label) }
                }
            }
            label class="field" for="requests" { span { "Requests per " (text(&limit, "window")) } }
            div class="range" {
                input type="range" min="1" max=((now * SLIDER_TIMES).max(requests).max(10)) value=(requests) data-for="requests" aria-label="Requests" ;
                input type="number" id="requests" name="requests" min="1" value=(requests);
            }
            div class="filters" {
                label class="inline" { "Window " input name="window" value=(text(&limit, "window")) size="6" maxlength="20"; }
                label class="inline" { "Burst " input name="burst" value=(plain(member(&limit, "burst"))) size="6" maxlength="20" inputmode="numeric"; }
                select name="range" aria-label="Over" {
                    @for (range, name) in traffic::RANGES { option value=(range) selected[range == traffic::range(call)] { (name) } }
                }
                button class="button primary" { "Try it" }
            }
        }
        section class="card" id="effect" aria-live="polite" { (effect) }
    };
    framed(operator, Framed { title: "What if", section: NavigationEntry::WhatIf, live: None, done: "", body })
}

/// The limit that is tried: that of the rule, with what the URL says. The rule's burst goes with its own number of requests.
fn wanted(call: &PageCall<'_>, rule: &Value) -> Value {
    let own = member(rule, "limit");
    let requests = call.query.number("requests").map(|requests| requests.max(1));
    let mut limit = Map::new();
    limit.insert("requests".to_owned(), requests.or(number(own, "requests")).unwrap_or(1).into());
    limit.insert("window".to_owned(), call.query.given("window").unwrap_or(text(own, "window")).into());
    match (call.query.number("burst"), own.get("burst")) {
        (Some(burst), _) => drop(limit.insert("burst".to_owned(), burst.into())),
        (None, Some(burst)) if requests.is_none() => drop(limit.insert("burst".to_owned(), burst.clone())),
        _ => {}
    }
    Value::Object(limit)
}

fn effect_markup(namespace: &str, effect: &Result<Value, CallProblem>) -> Markup {
    match effect {
        Ok(found) => preview::effect(namespace, found),
        Err(problem) if problem.status == 404 => empty(
            "Nothing is recorded of this rule.",
            html! { p { "As soon as requests meet it, they can be tried against other limits here." } },
        ),
        Err(problem) if problem.code == "no_analytics" => traffic::no_analytics(problem),
        Err(problem) => trouble(problem),
    }
}

async fn choose(operator: &Operator<'_>, namespace: &str) -> PageResult {
    let rules = operator.api.get(&url("/v1/rules", &[("namespace", namespace), ("limit", CHOICES)])).await?;
    let overview = operator.api.find(&url("/v1/traffic/overview", &[("window", "1h")])).await.unwrap_or_default();
    let limited: Vec<&Value> = list(&rules, "rules").iter().filter(|rule| member(rule, "limit").is_object()).collect();
    let busy = |rule: &str| list(&overview, "top_rules").iter().any(|own| text(own, "rule") == rule);
    let body = html! {
        (heading("What if", html! { "Try another limit on the requests of the last hour, day or month, before anyone feels it." }, html! {}))
        form class="filters" action="/console/what-if" {
            input type="hidden" name="namespace" value=(namespace);
            select name="rule" aria-label="Rule" required {
                @for rule in &limited {
                    @let id = text(rule, "rule_id");
                    option value=(id) { (id) ", " (limit_words(rule)) @if busy(id) { " (busy)" } }
                }
            }
            button class="button primary" { "Choose" }
        }
        @if limited.is_empty() { (empty("There is no rule yet.", html! { p { a class="button" href="/console/rule/edit" { "Make one" } } })) }
    };
    framed(operator, Framed { title: "What if", section: NavigationEntry::WhatIf, live: None, done: "", body })
}
