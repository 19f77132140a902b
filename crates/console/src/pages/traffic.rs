//! Traffic of rules and clients: what several pages show of it.

use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::decision;
use crate::api::CallProblem;
use crate::chart::{BarSeries, Chart, meter};
use crate::format::{duration_ns, grouped, millis, when};
use crate::json::{count, is_true, list, member, number, text};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::url;
use crate::parts::{Confirmed, badge, choice, client_link, empty, field, rule_link, trouble};

/// Bars of a chart.
const BARS: usize = 120;
/// Ranges that are recorded, and what they are called.
pub(super) const RANGES: [(&str, &str); 3] = [("1h", "Last hour"), ("1d", "Last day"), ("30d", "Last 30 days")];

/// A chart of a series of the API. `limit` is in units per step of the series.
pub(super) fn chart(title: &str, series: &Value, limit: Option<(u64, &str)>) -> Markup {
    let step_seconds = count(series, "step_seconds").max(1);
    let steps = list(series, "allowed").len();
    let group = steps.div_ceil(BARS).max(1);
    let of = |name: &'static str, class: &'static str, shown: &'static str| {
        let values: Vec<u64> = list(series, name).iter().map(|value| value.as_u64().unwrap_or(0)).collect();
        // The last bar is the present one: groups are counted from the end, so that it does not jump.
        let first = steps % group;
        let (head, tail) = values.split_at_checked(first).unwrap_or_default();
        let parts = Some(head).filter(|head| !head.is_empty()).into_iter().chain(tail.chunks(group));
        BarSeries { name: shown, class, values: parts.map(|part| part.iter().sum()).collect() }
    };
    let shadow = of("shadow_denied", "shadow", "shadow");
    let mut stacked = vec![of("allowed", "allowed", "allowed"), of("denied", "denied", "denied")];
    if shadow.values.iter().any(|value| *value > 0) {
        // What a rule in shadow mode would refuse was allowed: shown as its part.
        if let Some(allowed) = stacked.first_mut() {
            allowed.values.iter_mut().zip(&shadow.values).for_each(|(all, part)| *all = all.saturating_sub(*part));
        }
        stacked.insert(1, shadow);
    }
    let chart = Chart {
        title,
        start_ms: millis(text(series, "start")).unwrap_or(0),
        step_ms: step_seconds * 1000 * group as u64,
        series: stacked,
        limit: limit.map(|(units, name)| (units.saturating_mul(group as u64), name)),
    };
    chart.markup()
}

/// Units of a limit in a step; none for limits that do not renew by time, or that are smaller than a step can show.
fn limit_of_step(rule: &Value, series: &Value) -> Option<u64> {
    let window_ns = duration_ns(text(rule, "limit.window"))?;
    let units = u128::from(number(rule, "limit.requests")?);
    let step_ns = u128::from(count(series, "step_seconds").max(1)) * 1_000_000_000;
    u64::try_from(units * step_ns / u128::from(window_ns.max(1))).ok().filter(|units| *units > 0)
}

/// A rule: its traffic, who is closest to the limit, who was refused.
pub(super) async fn of_rule(
    operator: &Operator<'_>,
    call: &PageCall<'_>,
    namespace: &str,
    id: &str,
    rule: &Value,
) -> Markup {
    let now_ms = call.now_ms();
    let range = range(call);
    let api = &operator.api;
    let series = api.get(&url("/v1/traffic/series", &[("namespace", namespace), ("rule", id), ("range", range)])).await;
    let top = |by: &'static str| {
        url("/v1/traffic/top", &[("namespace", namespace), ("rule", id), ("by", by), ("limit", "8")])
    };
    let (closest, denied) =
        (api.find(&top("closest")).await.unwrap_or_default(), api.find(&top("denied")).await.unwrap_or_default());
    let refused =
        url("/v1/decisions", &[("namespace", namespace), ("rule", id), ("allowed", "false"), ("limit", "12")]);
    let refused = api.find(&refused).await.unwrap_or_default();
    let is_shared = text(rule, "key_by") == "global";
    html! {
        @match &series {
            Err(problem) => { (no_analytics(problem)) }
            Ok(series) => {
                @let limit = limit_of_step(rule, series).filter(|_| is_shared).map(|units| (units, "limit"));
                (chart(range_name(range), series, limit))
                (range_links(call, range, &[("namespace", namespace), ("id", id)], "/console/rule"))
            }
        }
        div class="columns" {
            section {
                h2 { "Closest to the limit" }
                @if list(&closest, "items").is_empty() { p class="dim" { "No client was seen lately." } }
                @else { (closest_table(member(&closest, "items"))) }
            }
            section {
                h2 { "Refused most" }
                @if list(&denied, "items").is_empty() { p class="dim" { "No client was refused lately." } }
                @else { (limited_table(operator, list(&denied, "items"), now_ms, false)) }
            }
        }
        section {
            h2 { "Recent refusals" }
            @if list(&refused, "decisions").is_empty() { p class="dim" { "None that is remembered." } }
            @else { (decision::table(&refused, now_ms)) }
        }
    }
}

/// A client over time.
pub(super) async fn of_client(operator: &Operator<'_>, call: &PageCall<'_>, namespace: &str, key: &str) -> Markup {
    let range = range(call);
    let series = url("/v1/traffic/series", &[("namespace", namespace), ("client", key), ("range", range)]);
    match operator.api.get(&series).await {
        Err(problem) => no_analytics(&problem),
        Ok(series) => html! {
            div {
                (chart(range_name(range), &series, None))
                (range_links(call, range, &[("namespace", namespace), ("key", key)], "/console/client"))
            }
        },
    }
}

/// The last decisions about a client.
pub(super) async fn decisions_of_client(operator: &Operator<'_>, namespace: &str, key: &str, now_ms: u64) -> Markup {
    let asked = url("/v1/decisions", &[("namespace", namespace), ("client", key), ("limit", "15")]);
    let decisions = operator.api.find(&asked).await.unwrap_or_default();
    let asked = url("/v1/violations", &[("namespace", namespace), ("client_key", key), ("limit", "10")]);
    let violations = operator.api.find(&asked).await.unwrap_or_default();
    html! {
        section {
            h2 { "Recent decisions" }
            @if list(&decisions, "decisions").is_empty() { p class="dim" { "None that is remembered." } }
            @else { (decision::table(&decisions, now_ms)) }
        }
        @if !list(&violations, "violations").is_empty() {
            section { h2 { "Refusals by the minute" } (violation_table(&violations, now_ms)) }
        }
    }
}

pub(super) fn range(call: &PageCall<'_>) -> &'static str {
    RANGES.iter().map(|(range, _)| *range).find(|range| *range == call.query.get("range")).unwrap_or("1h")
}

fn range_name(range: &str) -> &'static str {
    RANGES.iter().find(|(own, _)| *own == range).map_or("", |(_, name)| *name)
}

fn range_links(_: &PageCall<'_>, range: &str, parameters: &[(&str, &str)], path: &str) -> Markup {
    html! {
        p class="ranges" {
            @for (own, name) in RANGES {
                @let all: Vec<(&str, &str)> = parameters.iter().copied().chain([("range", own)]).collect();
                a href=(url(path, &all)) aria-current=[(own == range).then_some("true")] { (name) }
            }
        }
    }
}

/// Analytics are off, or out of reach.
pub(super) fn no_analytics(problem: &CallProblem) -> Markup {
    match problem.code.as_str() {
        "no_analytics" => empty(
            "Analytics are off on this server.",
            html! { p { "Traffic over time, rankings and decisions are not recorded. The setting " code { "analytics_memory" } " turns them on." } },
        ),
        _ => trouble(problem),
    }
}

/// Clients that are refused: who, by which rule, since when, until when.
pub(super) fn limited_table(operator: &Operator<'_>, items: &[Value], now_ms: u64, with_rule: bool) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Limited clients" {
            table class="list" {
                thead { tr { th { "Client" } @if with_rule { th { "Rule" } } th class="number" { "Refused" } th { "Since" } th { "Until" } } }
                tbody {
                    @for item in items {
                        @let namespace = text(item, "namespace");
                        tr {
                            td { (client_link(namespace, text(item, "client"))) }
                            @if with_rule { td { (rule_link(namespace, text(item, "rule"))) @if is_true(item, "shadow") { " " (badge("shadow")) } } }
                            td class="number" title=[(count(item, "error") > 0).then(|| format!("at most {} too high", count(item, "error")))] { (grouped(count(item, "count"))) }
                            td { (when(text(item, "limited_since"), now_ms)) }
                            td { (until(item, now_ms)) @if with_rule && operator.may("viewer") { " " (what_if_link(namespace, text(item, "rule"))) } }
                        }
                    }
                }
            }
        }
    }
}

fn until(item: &Value, now_ms: u64) -> Markup {
    let at = text(item, "limited_until");
    html! { @if millis(at).is_some_and(|at| at <= now_ms) { span class="dim" { "over" } } @else { (when(at, now_ms)) } }
}

fn what_if_link(namespace: &str, rule: &str) -> Markup {
    html! { a class="aside" href=(url("/console/what-if", &[("namespace", namespace), ("rule", rule)])) { "what if?" } }
}

/// Clients by how much of the limit they use.
pub(super) fn closest_table(items: &Value) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Closest clients" {
            table class="list" {
                thead { tr { th { "Client" } th class="wide" { "Used" } th class="number" { "Of" } } }
                tbody {
                    @for item in items.as_array().into_iter().flatten() {
                        tr {
                            td { (client_link(text(item, "namespace"), text(item, "client"))) }
                            td { (share_meter(item)) span class="dim" { (grouped(count(item, "used"))) } }
                            td class="number" { (grouped(count(item, "limit"))) }
                        }
                    }
                }
            }
        }
    }
}

fn share_meter(item: &Value) -> Markup {
    let share = count(item, "share_permille");
    meter(
        share,
        1000,
        if share >= 1000 {
            "bad"
        } else if share >= 800 {
            "warn"
        } else {
            "good"
        },
    )
}

/// Refusals, by client, rule and minute.
pub(super) fn violation_table(violations: &Value, now_ms: u64) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Refusals" {
            table class="list" {
                thead { tr { th { "Client" } th { "Rule" } th { "Endpoint" } th class="number" { "Refused" } th { "Last" } } }
                tbody {
                    @for row in list(violations, "violations") {
                        @let namespace = text(row, "namespace");
                        tr {
                            td { (client_link(namespace, text(row, "client_key"))) }
                            td { (rule_link(namespace, text(row, "rule_id"))) @if is_true(row, "shadow") { " " (badge("shadow")) } }
                            td class="wrap" { code { (text(row, "endpoint")) } }
                            td class="number" { (grouped(count(row, "refused"))) }
                            td { (when(text(row, "last_violated_at"), now_ms)) }
                        }
                    }
                }
            }
        }
    }
}

/// What a limit would have done in the last hour, above the button that saves it.
pub(super) async fn preview(operator: &Operator<'_>, namespace: &str, id: &str, document: &Value) -> Markup {
    let limit = member(document, "limit");
    if !limit.is_object() {
        return html! {};
    }
    match ask_preview(operator, namespace, id, limit, "1h").await {
        Err(problem) if problem.status == 404 => html! {
            p class="note" { "Nothing of this rule is recorded yet, so it cannot be tried on the last hour. In mode " code { "shadow" } " it counts without refusing." }
        },
        Err(problem) => html! { p class="note" { "It could not be tried on the last hour: " (problem.detail) } },
        Ok(preview) => {
            html! { section class="card" id="preview" { h2 { "In the last hour" } (effect(namespace, &preview)) } }
        }
    }
}

pub(super) async fn ask_preview(
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

/// A preview in a sentence and by client.
pub(super) fn effect(namespace: &str, preview: &Value) -> Markup {
    let (requests, then) = (count(preview, "requests"), count(preview, "refused_then"));
    html! {
        p class="sentence" { strong { (text(preview, "summary")) } }
        dl class="facts" {
            dt { "Requests recorded" } dd { (grouped(requests)) " of " (grouped(count(preview, "clients"))) " clients" }
            dt { "Refused then" } dd { (meter(then, requests, "bad")) (grouped(then)) }
            dt { "Refused with this limit" } dd { (meter(count(preview, "refused_max"), requests, "bad")) (spread(preview)) }
        }
        @if count(preview, "unattributed") > 0 { p class="dim" { (grouped(count(preview, "unattributed"))) " requests of clients that are not known by name are left out." } }
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

/// The least and the most that would be refused: records do not tell where in a step a request came.
fn spread(effect: &Value) -> String {
    let (least, most) = (count(effect, "refused_min"), count(effect, "refused_max"));
    if least == most { grouped(least) } else { format!("{} to {}", grouped(least.min(most)), grouped(most.max(least))) }
}

/// The form that forgets what a client has used.
pub(super) fn reset_form(operator: &Operator<'_>, namespace: &str, client: &str, rules: &[&str], back: &str) -> Markup {
    let mut options = vec![("", "All rules that apply")];
    options.extend(rules.iter().map(|rule| (*rule, *rule)));
    Confirmed {
        label: "Reset counters…",
        about: html! { "What the client has used is forgotten: it may use its whole limit again at once." },
        action: "/console/counters/reset",
        hidden: &[("namespace", namespace), ("client", client), ("back", back)],
        fields: html! {
            (choice("Rule", "rule", "", &options))
            (field("Endpoint", "endpoint", "", "if the rule asks for one, such as POST /api/orders"))
            (field("Reason", "reason", "", "it is in the audit"))
        },
        verb: "Reset",
        is_severe: true,
    }
    .markup(operator)
}

pub(super) async fn reset(call: &PageCall<'_>, operator: &Operator<'_>) -> super::PageResult {
    let names = ["namespace", "client", "rule", "endpoint", "reason"];
    let body = names.iter().filter_map(|name| call.form.given(name).map(|value| ((*name).to_owned(), value.into())));
    operator.api.send("POST", "/v1/counters/reset", &Value::Object(body.collect())).await?;
    Ok(super::overrides::back(call, "counter-reset"))
}
