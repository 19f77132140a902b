//! The nodes of the fleet: which runs what, sees which store, and when it was last heard of.

use std::collections::BTreeSet;

use maud::{Markup, html};
use serde_json::Value;

use super::{PageResult, framed};
use crate::format::{millis, when};
use crate::json::{is_true, list, member, plain, text};
use crate::layout::{Framed, NavigationEntry};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parts::{badge, database_badge, heading};

/// The page.
pub(super) const PATH: &str = "/console/nodes";
/// Without a reading of the shared store for so long, what is known of the others is old.
const OLD_AFTER_MS: u64 = 20_000;
/// Nodes on the page of the system.
const LISTED: usize = 6;

pub(super) async fn show(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let fleet = operator.api.get("/v1/nodes").await?;
    let about = html! { "Nodes that share a store tell each other of themselves. What differs between them stands above the table." };
    let body = html! {
        (heading("Nodes", about, html! { a class="button" href="/console/system" { "System" } }))
        div id="nodes" class="stack" { (fleet_markup(&fleet, call.now_ms())) }
    };
    let live = Some("/console/live?page=nodes".to_owned());
    framed(operator, Framed { title: "Nodes", section: NavigationEntry::System, live, done: "", body })
}

/// The parts that move.
pub(super) async fn live(call: &PageCall<'_>, operator: &Operator<'_>) -> Vec<(&'static str, Markup)> {
    let Some(fleet) = operator.api.find("/v1/nodes").await else { return Vec::new() };
    vec![("nodes", fleet_markup(&fleet, call.now_ms()))]
}

/// How many nodes there are, for other pages.
pub(super) fn counted(fleet: &Value) -> Markup {
    let nodes = list(fleet, "nodes");
    let missing = nodes.iter().filter(|node| is_true(node, "missing")).count();
    html! { a href=(PATH) { (nodes.len().max(1)) } @if missing > 0 { " " (badge(&format!("{missing} away"))) } }
}

/// The nodes in a few lines, for the page of the system.
pub(super) fn card(fleet: &Value) -> Markup {
    html! {
        section class="card" aria-label="Nodes" {
            h2 { "Nodes" }
            ul class="plain" {
                @for node in list(fleet, "nodes").iter().take(LISTED) {
                    li {
                        code { (text(node, "node")) } " " span class="dim" { (text(node, "version")) }
                        @if is_true(node, "is_self") { " " (badge("this")) }
                        @if is_true(node, "missing") { " " (badge("away")) }
                    }
                }
            }
            p { a href=(PATH) { "All nodes: stores, breakers, modes, generations" } }
        }
    }
}

fn fleet_markup(fleet: &Value, now_ms: u64) -> Markup {
    let nodes = list(fleet, "nodes");
    let notes = differences(fleet, now_ms);
    html! {
        @for (class, note) in &notes { p class={ "note " (class) } role="status" { (note) } }
        @if notes.is_empty() && nodes.len() > 1 { p class="note good" role="status" { "All nodes are here, with the same version, rules and mode, and each reaches its store and database." } }
        div class="scroll" tabindex="0" role="region" aria-label="Nodes" {
            table class="list" {
                thead { tr { th { "Node" } th { "Heard of" } th { "Store and breaker" } th { "Database" } th { "Mode" } th class="number" { "Generation" } th { "Version" } th { "Started" } } }
                tbody { @for node in nodes { (row(node, now_ms)) } }
            }
        }
        @if nodes.len() < 2 {
            p class="dim" { "No other node is known. Nodes find each other by the store that they share: one with its buckets in memory is alone." }
        }
    }
}

fn row(node: &Value, now_ms: u64) -> Markup {
    let servers = list(node, "store");
    let is_missing = is_true(node, "missing");
    html! {
        tr class=[is_missing.then_some("away")] {
            th scope="row" {
                code title=(text(node, "node_id")) { (text(node, "node")) }
                @if is_true(node, "is_self") { " " (badge("this")) }
                @if is_missing { " " (badge("away")) }
                @if is_true(node, "other_rules") { " " (badge("other rules")) }
            }
            td { @if is_true(node, "is_self") { "now" } @else { (when(text(node, "seen_at"), now_ms)) } }
            td {
                @if servers.is_empty() { "memory" }
                @for server in servers {
                    span class="server" { (badge(text(server, "state"))) " " (breaker(text(server, "state"))) " " code { (text(server, "address")) } }
                }
            }
            td { (database_badge(text(node, "database"))) }
            td { (badge(text(node, "mode"))) }
            td class="number" { @match plain(member(node, "generation")).as_str() { "" => { span class="dim" { "–" } } generation => { (generation) } } }
            td { (text(node, "version")) }
            td { (when(text(node, "started_at"), now_ms)) }
        }
    }
}

fn breaker(state: &str) -> Markup {
    html! { @match state { "down" => { span class="dim" { "breaker open" } } "recovering" => { span class="dim" { "breaker half-open" } } _ => {} } }
}

/// What is not as it should be, in sentences, the worst first.
fn differences(fleet: &Value, now_ms: u64) -> Vec<(&'static str, String)> {
    let nodes = list(fleet, "nodes");
    let mut notes = Vec::new();
    let mut note = |class: &'static str, holds: bool, text: String| {
        if holds {
            notes.push((class, text));
        }
    };
    let names = |of: &dyn Fn(&Value) -> bool| {
        let found = nodes.iter().filter(|node| of(node)).map(|node| text(node, "node"));
        found.collect::<Vec<&str>>().join(", ")
    };
    let shares_store = |node: &Value| !list(node, "store").is_empty();
    let read_at = millis(text(fleet, "read_at"));
    let is_old = read_at.is_none_or(|at| now_ms > at + OLD_AFTER_MS) && nodes.iter().any(shares_store);
    note(
        "bad",
        is_old,
        "This node does not reach the shared store: the others are shown as they were when it last did.".to_owned(),
    );
    let away = names(&|node| is_true(node, "missing"));
    note(
        "bad",
        !away.is_empty(),
        format!("Not heard of for more than twenty seconds: {away}. It may have crashed, or lost the store."),
    );
    let present: Vec<&Value> = nodes.iter().filter(|node| !is_true(node, "missing")).collect();
    let broken = names(&|node| {
        !is_true(node, "missing") && list(node, "store").iter().any(|server| text(server, "state") != "up")
    });
    note(
        "bad",
        !broken.is_empty(),
        format!("Does not use every server of its store: {broken}. Rules there do what their on_fail says."),
    );
    let apart = names(&|node| !is_true(node, "missing") && text(node, "database") == "away");
    note("warn", !apart.is_empty(), format!("Without its database, with the rules that it last read: {apart}."));
    let other_rules = names(&|node| !is_true(node, "missing") && is_true(node, "other_rules"));
    note(
        "bad",
        !other_rules.is_empty(),
        format!("Decides by other rules than this node: {other_rules}. Limits that they share do not hold."),
    );
    let values = |name: &str| present.iter().map(|node| plain(member(node, name))).collect::<BTreeSet<String>>();
    let listed = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<String>>().join(", ");
    let (modes, versions, mut generations) = (values("mode"), values("version"), values("generation"));
    generations.remove(""); // a node without a database
    note("warn", modes.len() > 1, format!("Nodes are in different modes: {}.", listed(&modes)));
    note(
        "warn",
        generations.len() > 1,
        format!(
            "Nodes hold different generations of the database: {}. That is over within two seconds unless one of them has lost it.",
            listed(&generations)
        ),
    );
    note("", versions.len() > 1, format!("Versions differ: {}.", listed(&versions)));
    notes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str) -> Value {
        json!({ "node": name, "is_self": name == "a", "seen_at": "2026-11-20T10:00:00Z", "missing": false, "other_rules": false,
            "version": "1", "started_at": null, "serving": 3, "generation": 2, "mode": "enforce", "database": "up",
            "store": [{ "address": "redis:6379", "state": "up" }] })
    }

    fn told(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut fleet = json!({ "read_at": "2026-11-20T10:00:00Z", "nodes": [node("a"), node("b")] });
        change(&mut fleet);
        let now_ms = millis("2026-11-20T10:00:05Z").unwrap();
        differences(&fleet, now_ms).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn what_is_not_as_it_should_be_is_said() {
        assert!(told(|_| {}).is_empty());
        let cases: [(&str, Value, &str); 7] = [
            ("/nodes/1/missing", true.into(), "Not heard of"),
            ("/nodes/1/store/0/state", "down".into(), "every server of its store: b"),
            ("/nodes/0/database", "away".into(), "Without its database"),
            ("/nodes/1/other_rules", true.into(), "other rules than this node: b"),
            ("/nodes/1/mode", "shadow".into(), "different modes: enforce, shadow"),
            ("/nodes/1/version", "2".into(), "Versions differ: 1, 2"),
            ("/read_at", Value::Null, "does not reach the shared store"),
        ];
        for (pointer, value, expected) in cases {
            let notes = told(|fleet| *fleet.pointer_mut(pointer).unwrap() = value);
            assert!(notes.len() == 1 && notes[0].contains(expected), "{pointer}: {notes:?}");
        }
    }

    #[test]
    fn a_node_in_memory_is_alone_and_well() {
        let fleet =
            json!({ "read_at": null, "nodes": [{ "node": "a", "is_self": true, "store": [], "database": "off" }] });
        assert!(differences(&fleet, 1 << 50).is_empty());
        assert!(fleet_markup(&fleet, 1 << 50).into_string().contains("No other node is known"));
        let hostile = json!({ "nodes": [{ "node": "<img src=x>", "version": "<script>", "store": [{ "address": "<b>", "state": "<i>" }] }] });
        let page = fleet_markup(&hostile, 0).into_string();
        assert!(
            !page.contains("<img") && !page.contains("<script") && !page.contains("<b>") && !page.contains("<i>"),
            "{page}"
        );
    }
}
