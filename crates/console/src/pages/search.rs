//! One search for rules and clients.

use maud::{Markup, html};
use serde_json::Value;

use super::{PageResult, framed};
use crate::json::{list, text};
use crate::layout::{Framed, NavigationEntry};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::url;
use crate::parts::{badge, client_link, client_url, limit_words, rule_link};
use crate::response::PageResponse;

/// Entries of each kind.
const SHOWN: &str = "8";

pub(super) async fn show(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let wanted = call.query.get("q");
    let found = results(operator, wanted).await;
    if call.query.get("part") == "list" {
        return Ok(PageResponse::of(found));
    }
    let body = html! {
        h1 { "Search" }
        form class="filters" action="/console/search" {
            input type="search" name="q" value=(wanted) placeholder="Rule or client" aria-label="Find" maxlength="200";
            button class="button" { "Find" }
        }
        (found)
    };
    framed(operator, Framed { title: "Search", section: NavigationEntry::None, live: None, done: "", body })
}

async fn results(operator: &Operator<'_>, wanted: &str) -> Markup {
    if wanted.is_empty() {
        return html! { p class="dim" { "Type a part of a rule’s name or endpoint, or the beginning of a client’s key." } };
    }
    let rules = operator.api.find(&url("/v1/rules", &[("search", wanted), ("limit", SHOWN)])).await.unwrap_or_default();
    let clients =
        operator.api.find(&url("/v1/clients", &[("prefix", wanted), ("limit", SHOWN)])).await.unwrap_or_default();
    let home = operator.home();
    html! {
        ul class="results" {
            @if wanted.len() == 16 && wanted.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                li { a href=(url("/console/decision", &[("id", wanted)])) { "Why: decision " code { (wanted) } } }
            }
            @for rule in list(&rules, "rules") { (rule_result(rule)) }
            @for client in list(&clients, "clients") {
                li { span class="dim" { "client" } " " (client_link(home, text(client, "client_key"))) " " span class="dim" { (text(client, "tier")) } }
            }
            li { a href=(client_url(home, wanted)) { "Everything about client " b { (wanted) } } }
        }
    }
}

fn rule_result(rule: &Value) -> Markup {
    html! {
        li {
            span class="dim" { "rule" } " " (rule_link(text(rule, "namespace"), text(rule, "rule_id"))) " "
            span class="dim" { (limit_words(rule)) } " " (badge(text(rule, "source")))
        }
    }
}
