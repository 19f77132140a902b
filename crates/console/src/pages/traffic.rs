//! Traffic of rules and clients: what several pages show of it.

use maud::{Markup, html};
use serde_json::Value;

use super::decision;
use super::rules::mode;
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

/// A chart of a series of the API, or these words if nothing is in it. `limit` is in units per step of the series.
pub(super) fn chart(title: &str, series: &Value, limit: Option<(u64, &str)>, without: &str) -> Markup {
    let is_empty = ["allowed", "denied", "shadow_denied"]
        .iter()
        .all(|name| list(series, name).iter().all(|value| value.as_u64().unwrap_or(0) == 0));
    if is_empty {
        return html! { figure class="chart bare" { figcaption { span class="title" { (title) } } p class="dim" { (without) } } };
    }
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
    let shadow = api.find(&top("shadow_denied")).await.unwrap_or_default();
    let refused =
        url("/v1/decisions", &[("namespace", namespace), ("rule", id), ("allowed", "false"), ("limit", "12")]);
    let refused = api.find(&refused).await.unwrap_or_default();
    let is_shared = text(rule, "key_by") == "global";
    html! {
        @match &series {
            Err(problem) => { (no_analytics(problem)) }
            Ok(series) => {
                @let limit = limit_of_step(rule, series).filter(|_| is_shared).map(|units| (units, "limit"));
                (chart(&format!("Requests, {}", range_name(range).to_lowercase()), series, limit, "No request met this rule in that time, as far as this node recorded."))
                (range_links(call, range, &[("namespace", namespace), ("id", id)], "/console/rule"))
            }
        }
        div class="columns" {
            section {
                h2 { "Closest to the limit" }
                @if list(&closest, "items").is_empty() { p class="dim" { "No client was seen lately." } }
                @else { (closest_table(member(&closest, "items"), false)) }
            }
            @if !list(&shadow, "items").is_empty() {
                section {
                    h2 { "Would be refused most (shadow)" }
                    (limited_table(operator, list(&shadow, "items"), now_ms, false))
                }
            }
            @if list(&shadow, "items").is_empty() || !list(&denied, "items").is_empty() {
                section {
                    h2 { "Refused most" }
                    @if list(&denied, "items").is_empty() { p class="dim" { "No client was refused lately." } }
                    @else { (limited_table(operator, list(&denied, "items"), now_ms, false)) }
                }
            }
        }
        section {
            h2 { "Recent refusals" }
            @if list(&refused, "decisions").is_empty() {
                p class="dim" { @if mode(rule) == "shadow" { "A rule in shadow mode refuses nothing." } @else { "None that is remembered." } }
            }
            @else { (decision::table(&refused, now_ms, true)) }
        }
    }
}

/// Of most clients no counts over time are kept: only of the heaviest of each rule.
const NO_SERIES: &str = "No counts over time are kept of this client: they begin with its eighth request, if it is among the \
    heaviest clients of a rule. What its rules have left, and its recent decisions, stand below all the same.";

/// A client over time.
pub(super) async fn of_client(operator: &Operator<'_>, call: &PageCall<'_>, namespace: &str, key: &str) -> Markup {
    let range = range(call);
    let series = url("/v1/traffic/series", &[("namespace", namespace), ("client", key), ("range", range)]);
    match operator.api.get(&series).await {
        Err(problem) => no_analytics(&problem),
        Ok(series) => html! {
            div {
                (chart(&format!("Requests, {}", range_name(range).to_lowercase()), &series, None, NO_SERIES))
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
            @else { (decision::table(&decisions, now_ms, false)) }
        }
        @if !list(&violations, "violations").is_empty() {
            section { h2 { "Refusals by the minute" } (violation_table(&violations, now_ms, false)) }
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
pub(super) fn closest_table(items: &Value, with_rule: bool) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Closest clients" {
            table class="list" {
                thead { tr { th { "Client" } @if with_rule { th { "Rule" } } th class="wide" { "Used" } th class="number" { "Of" } } }
                tbody {
                    @for item in items.as_array().into_iter().flatten() {
                        @let namespace = text(item, "namespace");
                        tr {
                            td { (client_link(namespace, text(item, "client"))) }
                            @if with_rule { td { (rule_link(namespace, text(item, "rule"))) } }
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
pub(super) fn violation_table(violations: &Value, now_ms: u64, with_client: bool) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Refusals" {
            table class="list" {
                thead { tr { @if with_client { th { "Client" } } th { "Rule" } th { "Endpoint" } th class="number" { "Refused" } th { "Last" } } }
                tbody {
                    @for row in list(violations, "violations") {
                        @let namespace = text(row, "namespace");
                        tr {
                            @if with_client { td { (client_link(namespace, text(row, "client_key"))) } }
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
