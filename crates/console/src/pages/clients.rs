//! The directory of clients, and who holds an override.

use maud::html;

use super::{PageResult, framed};
use crate::format::when;
use crate::json::{list, member, plain, text};
use crate::layout::{Framed, NavigationEntry};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::url;
use crate::parts::{client_link, empty, heading, more, namespace_filter, trouble};
use crate::response::PageResponse;

const PAGE_LENGTH: &str = "50";

pub(super) async fn show(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let namespace = call.query.given("namespace").unwrap_or(operator.home());
    let (prefix, tier) = (call.query.get("prefix"), call.query.get("tier"));
    let filter = [("namespace", namespace), ("prefix", prefix), ("tier", tier)];
    let asked: Vec<_> =
        filter.iter().copied().chain([("limit", PAGE_LENGTH), ("cursor", call.query.get("cursor"))]).collect();
    let found = operator.api.get(&url("/v1/clients", &asked)).await;
    let table = html! {
        @match &found {
            Err(problem) => { (trouble(problem)) }
            Ok(clients) if list(clients, "clients").is_empty() => {
                (empty(
                    if prefix.is_empty() && tier.is_empty() { "The directory is empty." } else { "No client in the directory is like that." },
                    html! {
                        p { "Limits do not need it: any key that a request names is a client, and has a page here. The directory gives keys a tier, a plan and an organisation, so that requests need not say them:" }
                        pre { code { "tollgate clients set key:abc --tier paid --org acme" } }
                        @if !prefix.is_empty() { p { a class="button" href=(crate::parts::client_url(namespace, prefix)) { "Show " (prefix) } } }
                    },
                ))
            }
            Ok(clients) => {
                div class="scroll" tabindex="0" role="region" aria-label="Clients" {
                    table class="list" {
                        thead { tr { th { "Client" } th { "Tier" } th { "Plan" } th { "Organisation" } th { "Attributes" } th { "Changed" } } }
                        tbody {
                            @for client in list(clients, "clients") {
                                tr {
                                    td { (client_link(namespace, text(client, "client_key"))) }
                                    td { (text(client, "tier")) }
                                    td { (text(client, "plan")) }
                                    td { @if !text(client, "organisation").is_empty() { (client_link(namespace, &format!("org:{}", text(client, "organisation")))) } }
                                    td class="wrap" { (plain(member(client, "attributes"))) }
                                    td { (when(text(client, "updated_at"), call.now_ms())) }
                                }
                            }
                        }
                    }
                }
                (more(clients, "/console/clients", &filter))
            }
        }
    };
    if call.query.get("part") == "list" {
        return Ok(PageResponse::of(table));
    }
    let namespaces = operator.api.find("/v1/namespaces?limit=1000").await.unwrap_or_default();
    let body = html! {
        (heading("Clients", html! { "Type any key to see everything it meets: " code { "user:42" } ", " code { "key:abc" } ", " code { "ip:192.0.2.1" } ", " code { "org:acme" } "." }, html! {}))
        form class="filters" action="/console/client" {
            input type="search" name="key" placeholder="Key of a client" aria-label="Key of a client" required maxlength="500";
            input type="hidden" name="namespace" value=(namespace);
            button class="button primary" { "Show" }
        }
        h2 { "Directory" }
        form class="filters" action="/console/clients" data-list="clients" {
            @if operator.may("operator") { input type="search" name="prefix" value=(prefix) placeholder="Key begins with" aria-label="Key begins with" maxlength="200"; }
            input type="search" name="tier" value=(tier) placeholder="Tier" aria-label="Tier" maxlength="100";
            (namespace_filter(&namespaces, namespace))
            button class="button" { "Find" }
        }
        div id="clients" { (table) }
    };
    framed(operator, Framed { title: "Clients", section: NavigationEntry::Clients, live: None, done: "", body })
}
