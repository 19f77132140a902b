//! The overview: what is limited now, by which rule, whom, since when; and the switch.

use maud::{Markup, html};
use serde_json::Value;

use super::{PageResult, framed, mode, nodes, penalties, system, traffic};
use crate::api::CallProblem;
use crate::format::{grouped, short, when};
use crate::json::{count, is_true, list, member, text};
use crate::layout::{Framed, NavigationEntry};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::url;
use crate::parts::{badge, client_link, database_badge, empty, heading, rule_link};

const WINDOWS: [(&str, &str); 4] = [("1m", "1 min"), ("5m", "5 min"), ("15m", "15 min"), ("1h", "1 h")];

pub(super) async fn show(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let (window, now_ms) = (window(call), call.now_ms());
    let status = operator.api.get("/v1/status").await?;
    let namespace = call.query.get("namespace");
    let links = html! {
        p class="ranges" {
            @for (own, name) in WINDOWS {
                a href=(url("/", &[("window", own), ("namespace", namespace)])) aria-current=[(own == window).then_some("true")] { (name) }
            }
        }
    };
    let overview = operator.api.get(&overview_url(call)).await;
    let switch = operator.api.find("/v1/mode").await.unwrap_or_default();
    let fleet = operator.api.find("/v1/nodes").await.unwrap_or_default();
    let about = html! { "What is limited now" @if !namespace.is_empty() { " in " code { (namespace) } } ", by which rule, and whom." };
    let live = url("/console/live", &[("page", "overview"), ("window", window), ("namespace", namespace)]);
    let body = html! {
        (heading("Overview", about, links))
        (system::trouble_of(&status))
        div class="cards" { (mode::card(operator, &switch, now_ms)) div id="numbers" class="contents" { (numbers(call, &overview, &status, &fleet)) } }
        div id="traffic" class="stack" { (traffic_of(operator, &overview, now_ms).await) }
        (penalties::section(operator, namespace, now_ms).await)
    };
    framed(
        operator,
        Framed {
            title: "Overview",
            section: NavigationEntry::Overview,
            live: Some(live),
            done: call.query.get("done"),
            body,
        },
    )
}

/// The parts that move.
pub(super) async fn live(call: &PageCall<'_>, operator: &Operator<'_>) -> Vec<(&'static str, Markup)> {
    let status = operator.api.find("/v1/status").await.unwrap_or_default();
    let overview = operator.api.get(&overview_url(call)).await;
    let fleet = operator.api.find("/v1/nodes").await.unwrap_or_default();
    let numbers = numbers(call, &overview, &status, &fleet);
    vec![("numbers", numbers), ("traffic", traffic_of(operator, &overview, call.now_ms()).await)]
}

fn window(call: &PageCall<'_>) -> &'static str {
    WINDOWS.iter().map(|(window, _)| *window).find(|window| *window == call.query.get("window")).unwrap_or("5m")
}

fn overview_url(call: &PageCall<'_>) -> String {
    url("/v1/traffic/overview", &[("window", window(call)), ("namespace", call.query.get("namespace"))])
}

/// The cards.
fn numbers(call: &PageCall<'_>, overview: &Result<Value, CallProblem>, status: &Value, fleet: &Value) -> Markup {
    let Ok(overview) = overview else { return system_card(status, fleet) };
    let limited = count(overview, "limited_now");
    html! {
        section class="card" aria-label="Limited now" {
            p class="label" { "Limited now" }
            p class={ "figure" @if limited > 0 { " bad" } } { (grouped(limited)) @if !is_true(overview, "limited_now_is_exact") { "+" } }
            p class="dim" { @if limited == 1 { "client" } @else { "clients" } }
        }
        @for (name, label, class) in [("allowed", "Allowed", ""), ("denied", "Denied", "bad"), ("shadow_denied", "Shadow", "warn")] {
            @let total = count(overview, &format!("totals.{name}"));
            section class="card" aria-label=(label) {
                p class="label" { (label) " / s" }
                p class={ "figure " @if total > 0 { (class) } } { (rate(member(overview, &format!("per_second.{name}")))) }
                p class="dim" { (short(total)) " in " (WINDOWS.iter().find(|(own, _)| *own == window(call)).map_or("", |(_, name)| name)) }
            }
        }
        (system_card(status, fleet))
    }
}

/// Store, database, nodes and generation, each as one line.
fn system_card(status: &Value, fleet: &Value) -> Markup {
    html! {
        section class="card lines" aria-label="System" {
            p { span class="dim" { "Store " } @if list(status, "store").is_empty() { "memory" } @for server in list(status, "store") { (badge(text(server, "state"))) } }
            p { span class="dim" { "Database " } (database_badge(text(status, "database.state"))) }
            p { span class="dim" { "Generation " } (count(status, "serving")) }
            p { span class="dim" { "Nodes " } span { (nodes::counted(fleet)) } }
        }
    }
}

/// Rates have one decimal.
fn rate(value: &Value) -> String {
    let tenths = value.as_f64().map_or(0, |rate| (rate * 10.0) as u64);
    if tenths >= 1000 { short(tenths / 10) } else { format!("{}.{}", tenths / 10, tenths % 10) }
}

/// The chart and the rankings.
async fn traffic_of(operator: &Operator<'_>, overview: &Result<Value, CallProblem>, now_ms: u64) -> Markup {
    let overview = match overview {
        Ok(overview) => overview,
        Err(problem) => return without_analytics(operator, problem, now_ms).await,
    };
    let (newly, denied, shadow) =
        (list(overview, "newly_denied"), list(overview, "top_denied"), list(overview, "shadow_denied"));
    html! {
        (traffic::chart("Requests", member(overview, "series"), None, "No request was decided in that time."))
        section {
            h2 { "Newly refused" }
            @if newly.is_empty() {
                (empty("No client is refused.", html! { p { "A client that runs into a limit appears here within a second: who, by which rule, since when, and when it may come again." } }))
            } @else { (traffic::limited_table(operator, newly, now_ms, true)) }
        }
        div class="columns" {
            section {
                h2 { "Rules" }
                @if list(overview, "top_rules").is_empty() { p class="dim" { "No rule has counted a request." } } @else { (rule_table(overview)) }
            }
            section {
                h2 { "Refused most" }
                @if denied.is_empty() { p class="dim" { "No client was refused lately." } } @else { (offender_table(denied)) }
            }
            @if !shadow.is_empty() { section { h2 { "Would be refused (shadow)" } (offender_table(shadow)) } }
            @if !list(overview, "closest").is_empty() { section { h2 { "Closest to a limit" } (traffic::closest_table(member(overview, "closest"), true)) } }
            @if list(overview, "nodes").len() > 1 { (node_section(overview, now_ms)) }
        }
    }
}

fn rule_table(overview: &Value) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Rules" {
            table class="list" {
                thead { tr { th { "Rule" } th class="number" { "Denied" } th class="number" { "Shadow" } th class="number" { "Allowed" } } }
                tbody {
                    @for rule in list(overview, "top_rules") {
                        tr {
                            td { (rule_link(text(rule, "namespace"), text(rule, "rule"))) }
                            @for name in ["denied", "shadow_denied", "allowed"] { td class={ "number" @if count(rule, name) == 0 { " dim" } } { (short(count(rule, name))) } }
                        }
                    }
                }
            }
        }
    }
}

fn offender_table(items: &[Value]) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Clients" {
            table class="list" {
                thead { tr { th { "Client" } th { "Rule" } th class="number" { "Refused" } } }
                tbody {
                    @for item in items {
                        @let namespace = text(item, "namespace");
                        tr {
                            td { (client_link(namespace, text(item, "client"))) }
                            td { (rule_link(namespace, text(item, "rule"))) }
                            td class="number" { (grouped(count(item, "count"))) }
                        }
                    }
                }
            }
        }
    }
}

fn node_section(overview: &Value, now_ms: u64) -> Markup {
    html! {
        section {
            h2 { "Nodes" }
            p { a href=(nodes::PATH) { "Stores, breakers, modes and generations of all nodes" } }
            div class="scroll" tabindex="0" role="region" aria-label="Nodes" {
                table class="list" {
                    thead { tr { th { "Node" } th class="number" { "Allowed/s" } th class="number" { "Denied/s" } th { "Heard of" } } }
                    tbody {
                        @for node in list(overview, "nodes") {
                            tr {
                                td { code { (text(node, "node")) } @if is_true(node, "is_self") { " " (badge("this")) } @if is_true(node, "missing") { " " (badge("away")) } }
                                td class="number" { (rate(member(node, "per_second.allowed"))) }
                                td class="number" { (rate(member(node, "per_second.denied"))) }
                                td { (when(text(node, "seen_at"), now_ms)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Without analytics, what the database has of refusals.
async fn without_analytics(operator: &Operator<'_>, problem: &CallProblem, now_ms: u64) -> Markup {
    let violations = operator.api.find("/v1/violations?limit=15").await.unwrap_or_default();
    html! {
        (traffic::no_analytics(problem))
        section {
            h2 { "Refused lately" }
            @if list(&violations, "violations").is_empty() { p class="dim" { "Nothing was refused." } } @else { (traffic::violation_table(&violations, now_ms, true)) }
        }
    }
}
