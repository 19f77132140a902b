//! History: who changed what, generations, and the way back.

use maud::{Markup, html};
use serde_json::Value;

use super::{PageResult, framed};
use crate::format::when;
use crate::json::{count, list, plain, text};
use crate::layout::{Framed, NavigationEntry};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::url;
use crate::parts::{Confirmed, badge, changes, client_link, empty, heading, more, rule_link};
use crate::response::PageResponse;

const PAGE_LENGTH: &str = "30";
const KINDS: [&str; 11] =
    ["rule", "override", "client", "plan", "grant", "token", "key", "mode", "rule_mode", "webhook", "penalty"];

pub(super) async fn show(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let names = ["namespace", "kind", "id", "author"];
    let filter: Vec<(&str, &str)> = names.iter().map(|name| (*name, call.query.get(name))).collect();
    let mut asked = filter.clone();
    asked.extend([("limit", PAGE_LENGTH), ("cursor", call.query.get("cursor"))]);
    let rows = operator.api.get(&url("/v1/audit", &asked)).await?;
    let generations = operator
        .api
        .find(&url("/v1/generations", &[("namespace", call.query.get("namespace")), ("limit", "12")]))
        .await
        .unwrap_or_default();
    // It reads the whole audit: only when it is asked for.
    let verified = match call.query.given("verify") {
        Some(_) if operator.sees_all() => operator.api.find("/v1/audit/verify").await,
        _ => None,
    };
    let now_ms = call.now_ms();
    let about = html! {
        "Every change, who made it, and the way back."
        @if let Some(verified) = &verified { " " (chain(verified)) }
        @else if operator.sees_all() { " " a href="/console/audit?verify=yes" { "Verify the chain of hashes" } "." }
    };
    let body = html! {
        (heading("History", about, html! {}))
        form class="filters" action="/console/audit" {
            select name="kind" aria-label="Kind" data-submit {
                option value="" { "Everything" }
                @for kind in KINDS { option value=(kind) selected[kind == call.query.get("kind")] { (kind) } }
            }
            input type="search" name="id" value=(call.query.get("id")) placeholder="Id" aria-label="Id" maxlength="500";
            input type="search" name="author" value=(call.query.get("author")) placeholder="Token id of the author" aria-label="Author" maxlength="100";
            @if !call.query.get("namespace").is_empty() { input type="hidden" name="namespace" value=(call.query.get("namespace")); }
            button class="button" { "Find" }
        }
        div class="columns wide-left" {
            section {
                h2 { "Changes" }
                @if list(&rows, "audit").is_empty() { (empty("Nothing was changed.", html! { p { "Changes appear here as they are made, in whatever way." } })) }
                @else { (entries(operator, &rows, now_ms)) (more(&rows, "/console/audit", &filter)) }
            }
            section { h2 { "Generations" } (generation_list(&generations, now_ms)) }
        }
    };
    framed(
        operator,
        Framed { title: "History", section: NavigationEntry::History, live: None, done: call.query.get("done"), body },
    )
}

fn chain(verified: &Value) -> Markup {
    let is_whole = verified.get("intact") != Some(&Value::Bool(false));
    html! { @if is_whole { (badge("ok")) " The chain of hashes is whole." } @else { (badge("failed")) " The chain of hashes is broken: rows were changed by hand." } }
}

/// Rows of the audit, each with what it changed and the way back.
pub(super) fn entries(operator: &Operator<'_>, rows: &Value, now_ms: u64) -> Markup {
    html! {
        ol class="timeline" {
            @for row in list(rows, "audit") {
                li {
                    details {
                        summary {
                            span class="what" { (badge(text(row, "action"))) " " (text(row, "kind")) " " strong { (text(row, "id")) } }
                            span class="dim" { (author(row)) " · " (when(text(row, "at"), now_ms)) }
                        }
                        (changes(row))
                        p class="dim" {
                            "Number " (count(row, "number")) ", generation "
                            a href=(url("/console/generation", &[("generation", &count(row, "generation").to_string()), ("namespace", text(row, "namespace"))])) { (count(row, "generation")) }
                            " · " (place(row))
                        }
                        @if operator.may("operator") && matches!(text(row, "kind"), "rule" | "override" | "client" | "plan" | "grant" | "rule_mode") {
                            (revert_form(operator, row))
                        }
                    }
                }
            }
        }
    }
}

fn author(row: &Value) -> &str {
    Some(text(row, "author_name")).filter(|name| !name.is_empty()).unwrap_or(text(row, "author"))
}

/// The page of what was changed.
fn place(row: &Value) -> Markup {
    let namespace = text(row, "namespace");
    match text(row, "kind") {
        "rule" | "rule_mode" => rule_link(namespace, text(row, "id")),
        "client" => client_link(namespace, text(row, "id")),
        _ => html! { (namespace) },
    }
}

fn revert_form(operator: &Operator<'_>, row: &Value) -> Markup {
    let number = count(row, "number").to_string();
    Confirmed {
        label: "Revert…",
        about: html! { "Makes it as it was before this change; other changes stay. Refused if it was changed again since." },
        action: "/console/audit/revert",
        hidden: &[("number", &number), ("namespace", text(row, "namespace"))],
        fields: html! {},
        verb: "Revert this change",
        is_severe: false,
    }
    .markup(operator)
}

fn generation_list(generations: &Value, now_ms: u64) -> Markup {
    html! {
        ol class="timeline" {
            @for entry in list(generations, "generations") {
                @let number = count(entry, "generation").to_string();
                li {
                    a href=(url("/console/generation", &[("generation", &number)])) { strong { (number) } }
                    " " (text(entry, "action")) " " span class="dim" { (author(entry)) ", " (plain(&entry["changes"])) " changed · " (when(text(entry, "at"), now_ms)) }
                }
            }
        }
    }
}

pub(super) async fn revert(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let number = call.form.number("number").unwrap_or(0);
    let target = url(&format!("/v1/audit/{number}/revert"), &[("namespace", call.form.get("namespace"))]);
    operator.api.send("POST", &target, &Value::Null).await?;
    Ok(PageResponse::redirect("/console/audit?done=reverted"))
}

/// What is different since a generation, and the way back to it.
pub(super) async fn generation(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let number = call.query.number("generation").unwrap_or(0).to_string();
    let namespace = call.query.given("namespace").unwrap_or(operator.home());
    let latest = operator.api.get("/v1/status").await?;
    let latest = count(&latest, "generation").to_string();
    let parameters = [("namespace", namespace), ("from", number.as_str()), ("to", latest.as_str())];
    let diff = operator.api.get(&url("/v1/generations/diff", &parameters)).await?;
    let rollback = url(&format!("/v1/generations/{number}/rollback"), &[("namespace", namespace), ("dry_run", "true")]);
    let would = match operator.may("operator") {
        true => Some(operator.api.send("POST", &rollback, &Value::Null).await),
        false => None,
    };
    let body = html! {
        (heading(&format!("Generation {number}"), html! { "What is different in " code { (namespace) } " since then." }, html! {
            @if let Some(Ok(would)) = &would {
                @if !list(would, "changes").is_empty() { (rollback_form(operator, &number, namespace, list(would, "changes").len())) }
            }
        }))
        @if list(&diff, "changes").is_empty() { p class="note" { "Nothing: the namespace is as it was." } }
        @for change in list(&diff, "changes") {
            section class="card" { h2 { (text(change, "kind")) " " (text(change, "id")) } (changes(change)) }
        }
    };
    framed(operator, Framed { title: "Generation", section: NavigationEntry::History, live: None, done: "", body })
}

fn rollback_form(operator: &Operator<'_>, number: &str, namespace: &str, changed: usize) -> Markup {
    Confirmed {
        label: "Roll back…",
        about: html! { "Makes the rules of " (namespace) " as they were: " (changed) " of them change, as one new generation. Overrides and clients stay." },
        action: "/console/generation/rollback",
        hidden: &[("generation", number), ("namespace", namespace)],
        fields: html! {},
        verb: "Roll back the rules",
        is_severe: true,
    }
    .markup(operator)
}

pub(super) async fn roll_back(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let number = call.form.number("generation").unwrap_or(0);
    let target = url(&format!("/v1/generations/{number}/rollback"), &[("namespace", call.form.get("namespace"))]);
    operator.api.send("POST", &target, &Value::Null).await?;
    Ok(PageResponse::redirect("/console/audit?done=rolled-back"))
}
