//! The system itself: this node, its store and database, namespaces, and what could not be loaded.

use maud::{Markup, html};
use serde_json::Value;

use super::{PageResult, framed, nodes, webhooks};
use crate::format::{grouped, when};
use crate::json::{count, list, member, plain, text};
use crate::layout::{Framed, NavigationEntry};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::url;
use crate::parts::{badge, heading, more, shown_once};

pub(super) async fn show(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let secret = call.take_over();
    let status = operator.api.get("/v1/status").await?;
    let asked = url("/v1/namespaces", &[("limit", "100"), ("cursor", call.query.get("cursor"))]);
    let namespaces = operator.api.find(&asked).await.unwrap_or_default();
    let fleet = operator.api.find("/v1/nodes").await.unwrap_or_default();
    let plans = operator.api.find("/v1/plans").await.unwrap_or_default();
    let body = html! {
        (heading("System", html! { "Node " code { (text(&status, "node")) } "." }, html! {}))
        @if let Some((secret, _)) = &secret { (shown_once(secret)) }
        (trouble_of(&status))
        div class="columns" {
            section class="card" {
                h2 { "This node" }
                dl class="facts" {
                    dt { "Generation" } dd { (count(&status, "generation")) @if count(&status, "serving") != count(&status, "generation") { " of the database, serving " (count(&status, "serving")) } }
                    dt { "Mode" } dd { (badge(text(&status, "mode"))) }
                    dt { "Database" } dd { (badge(text(&status, "database.state"))) " " (text(&status, "database.error")) " " span class="dim" { "read " (when(text(&status, "refreshed_at"), call.now_ms())) } }
                    dt { "Store" } dd { @if list(&status, "store").is_empty() { "memory of this node" } @for server in list(&status, "store") { (badge(text(server, "state"))) " " code { (text(server, "address")) } br; } }
                    dt { "Metrics" } dd { a href="/metrics" { "/metrics" } ", " a href="/ready" { "/ready" } }
                }
            }
            (nodes::card(&fleet))
        }
        section {
            h2 { "Namespaces" }
            div class="scroll" tabindex="0" role="region" aria-label="Namespaces" {
                table class="list" {
                    thead { tr { th { "Namespace" } th class="number" { "Database" } th class="number" { "Files" } th class="number" { "Envoy" } } }
                    tbody {
                        @for namespace in list(&namespaces, "namespaces") {
                            @let name = text(namespace, "namespace");
                            tr {
                                td { a class="code" href=(url("/console/rules", &[("namespace", name)])) { (name) } }
                                @for source in ["rules.database", "rules.file", "rules.envoy"] { td class="number" { (grouped(count(namespace, source))) } }
                            }
                        }
                    }
                }
            }
            (more(&namespaces, "/console/system", &[]))
        }
        @if !list(&plans, "plans").is_empty() {
            section {
                h2 { "Plans" }
                ul { @for plan in list(&plans, "plans") { li { code { (text(plan, "plan_id")) } " " span class="dim" { (plain(member(plan, "name"))) } } } }
            }
        }
        (webhooks::section(operator, call.now_ms()).await)
    };
    let page = framed(
        operator,
        Framed { title: "System", section: NavigationEntry::System, live: None, done: call.query.get("done"), body },
    )?;
    Ok(match secret {
        Some((_, forget)) => page.cookie(forget),
        None => page,
    })
}

/// What could not be loaded.
pub(super) fn trouble_of(status: &Value) -> Markup {
    let (files, rows) = (list(status, "file_errors"), list(status, "quarantined"));
    html! {
        @for error in files { p class="note bad" role="alert" { strong { "A rules file could not be loaded; the last good one is in force. " } (plain(error)) } }
        @if !rows.is_empty() {
            div class="note warn" role="alert" {
                p { strong { (rows.len()) " rows of the database cannot be used:" } }
                ul { @for row in rows { li { (text(row, "kind")) " " code { (text(row, "id")) } " in " (text(row, "namespace")) ": " (text(row, "reason")) } } }
            }
        }
    }
}
