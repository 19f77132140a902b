//! Who may do what: tokens of operators, and API keys of clients.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::{PageResult, framed};
use crate::format::when;
use crate::json::{list, member, plain, text};
use crate::layout::{Framed, NavigationEntry};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::{encoded, url};
use crate::parts::{Confirmed, badge, choice, client_link, empty, field, heading, more, shown_once, trouble};
use crate::response::PageResponse;

const ROLES: [(&str, &str); 5] = [
    ("viewer", "viewer: sees, with client keys masked"),
    ("on-call", "on-call: may switch to shadow and back"),
    ("operator", "operator: changes rules, overrides, clients"),
    ("admin", "admin: everything, tokens included"),
    ("check", "check: only the data API"),
];
const LIFETIMES: [(&str, &str); 5] =
    [("90d", "90 days"), ("30d", "30 days"), ("7d", "7 days"), ("1d", "1 day"), ("", "no end")];
const PAGE_LENGTH: &str = "50";

pub(super) async fn show(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let secret = call.take_over();
    let body = html! {
        (heading("Access", html! { "Tokens are for this API and this console; keys are what clients of your API present." }, html! {}))
        @if let Some((secret, _)) = &secret { (shown_once(secret)) }
        (tokens(operator, call.now_ms()).await)
        (keys(call, operator).await)
    };
    let page = framed(
        operator,
        Framed { title: "Access", section: NavigationEntry::Access, live: None, done: call.query.get("done"), body },
    )?;
    Ok(match secret {
        Some((_, forget)) => page.cookie(forget),
        None => page,
    })
}

async fn tokens(operator: &Operator<'_>, now_ms: u64) -> Markup {
    let tokens = operator.api.get("/v1/tokens").await;
    html! {
        section {
            h2 { "Tokens" }
            @match &tokens {
                Err(problem) => { (trouble(problem)) }
                Ok(tokens) => {
                    div class="scroll" tabindex="0" role="region" aria-label="Tokens" {
                        table class="list" {
                            thead { tr { th { "Name" } th { "Id" } th { "Role" } th { "Namespaces" } th { "Used" } th { "Ends" } th { span class="hidden" { "Actions" } } } }
                            tbody { @for token in list(tokens, "tokens") { (token_row(operator, token, now_ms)) } }
                        }
                    }
                    (token_form(operator))
                }
            }
        }
    }
}

fn token_row(operator: &Operator<'_>, token: &Value, now_ms: u64) -> Markup {
    let namespaces = plain(member(token, "namespaces"));
    let is_own = text(token, "token_id") == text(&operator.whoami, "token_id");
    html! {
        tr {
            td { (text(token, "name")) @if is_own { " " (badge("yours")) } }
            td { code { (text(token, "token_id")) } }
            td { (badge(text(token, "role"))) }
            td { @if namespaces.is_empty() { "all" } @else { (namespaces) } }
            td { (when(text(token, "last_used_at"), now_ms)) }
            td { @if member(token, "expires_at").is_null() { "never" } @else { (when(text(token, "expires_at"), now_ms)) } }
            td {
                (Confirmed {
                    label: "Revoke…",
                    about: html! { @if is_own { "This is the token that you are signed in with: it signs you out. " } "It is refused from now on, on every node within two seconds." },
                    action: "/console/access/token/revoke",
                    hidden: &[("id", text(token, "token_id"))],
                    fields: html! {},
                    verb: "Revoke the token",
                    is_severe: true,
                }.markup(operator))
            }
        }
    }
}

fn token_form(operator: &Operator<'_>) -> Markup {
    Confirmed {
        label: "New token…",
        about: html! { "It is shown once. Give each person and each program one of their own." },
        action: "/console/access/token",
        hidden: &[],
        fields: html! {
            (field("Name", "name", "", "who or what it is for"))
            (choice("Role", "role", "viewer", &ROLES))
            (field("Namespaces", "namespaces", "", "joined by commas; empty for all"))
            (choice("Ends in", "expires_in", "90d", &LIFETIMES))
        },
        verb: "Make the token",
        is_severe: false,
    }
    .markup(operator)
}

async fn keys(call: &PageCall<'_>, operator: &Operator<'_>) -> Markup {
    let namespace = call.query.given("namespace").unwrap_or(operator.home());
    let client = call.query.get("client_key");
    let filter = [("namespace", namespace), ("client_key", client)];
    let asked: Vec<_> =
        filter.iter().copied().chain([("limit", PAGE_LENGTH), ("cursor", call.query.get("cursor"))]).collect();
    let keys = operator.api.get(&url("/v1/keys", &asked)).await;
    html! {
        section {
            h2 { "API keys" }
            form class="filters" action="/console/access" {
                input type="hidden" name="namespace" value=(namespace);
                input type="search" name="client_key" value=(client) placeholder="Client" aria-label="Client" maxlength="500";
                button class="button" { "Find" }
            }
            @match &keys {
                Err(problem) => { (trouble(problem)) }
                Ok(keys) if list(keys, "keys").is_empty() => {
                    (empty("No keys here.", html! { p { "The gateway can look API keys up: a request then counts for the client of its key. Only a digest of a key is kept." } }))
                }
                Ok(keys) => {
                    div class="scroll" tabindex="0" role="region" aria-label="Keys" {
                        table class="list" {
                            thead { tr { th { "Key" } th { "Client" } th { "State" } th { "Ends" } th { span class="hidden" { "Actions" } } } }
                            tbody { @for key in list(keys, "keys") { (key_row(operator, namespace, key, call.now_ms())) } }
                        }
                    }
                    (more(keys, "/console/access", &filter))
                }
            }
            @if operator.may("operator") { (key_form(operator, namespace)) }
        }
    }
}

fn key_row(operator: &Operator<'_>, namespace: &str, key: &Value, now_ms: u64) -> Markup {
    let is_revoked = !member(key, "revoked_at").is_null();
    html! {
        tr {
            td { (text(key, "name")) " " code { (text(key, "key_id")) } }
            td { (client_link(namespace, text(key, "client_key"))) }
            td { (badge(if is_revoked { "revoked" } else { "active" })) }
            td { @if member(key, "expires_at").is_null() { "never" } @else { (when(text(key, "expires_at"), now_ms)) } }
            td {
                @if !is_revoked && operator.may("operator") {
                    (Confirmed {
                        label: "Revoke…",
                        about: html! { "Requests with this key are refused from now on." },
                        action: "/console/access/key/revoke",
                        hidden: &[("id", text(key, "key_id")), ("namespace", namespace)],
                        fields: html! {},
                        verb: "Revoke the key",
                        is_severe: true,
                    }.markup(operator))
                }
            }
        }
    }
}

fn key_form(operator: &Operator<'_>, namespace: &str) -> Markup {
    Confirmed {
        label: "New key…",
        about: html! { "It is shown once." },
        action: "/console/access/key",
        hidden: &[("namespace", namespace)],
        fields: html! {
            (field("Client", "client_key", "", "whose requests it identifies, such as user:42"))
            (field("Name", "name", "", "such as mobile app"))
        },
        verb: "Make the key",
        is_severe: false,
    }
    .markup(operator)
}

pub(super) async fn create_token(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let form = &call.form;
    let mut body = Map::new();
    body.insert("name".to_owned(), form.get("name").into());
    body.insert("role".to_owned(), form.get("role").into());
    let namespaces = form.get("namespaces").split(',').map(str::trim).filter(|name| !name.is_empty());
    let namespaces: Vec<&str> = namespaces.collect();
    if !namespaces.is_empty() {
        body.insert("namespaces".to_owned(), namespaces.into());
    }
    if let Some(lifetime) = form.given("expires_in") {
        body.insert("expires_in".to_owned(), lifetime.into());
    }
    let made = operator.api.send("POST", "/v1/tokens", &Value::Object(body)).await?;
    Ok(call.hand_over("/console/access", text(&made, "token")))
}

pub(super) async fn revoke_token(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    operator.api.send("DELETE", &format!("/v1/tokens/{}", encoded(call.form.get("id"))), &Value::Null).await?;
    Ok(PageResponse::redirect("/console/access?done=token-revoked"))
}

pub(super) async fn create_key(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let form = &call.form;
    let mut body = Map::new();
    for name in ["client_key", "name"] {
        if let Some(value) = form.given(name) {
            body.insert(name.to_owned(), value.into());
        }
    }
    let target = url("/v1/keys", &[("namespace", form.get("namespace"))]);
    let made = operator.api.send("POST", &target, &Value::Object(body)).await?;
    let secret = text(&made, "key");
    Ok(call.hand_over("/console/access", secret))
}

pub(super) async fn revoke_key(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let target = format!("/v1/keys/{}", encoded(call.form.get("id")));
    operator.api.send("DELETE", &url(&target, &[("namespace", call.form.get("namespace"))]), &Value::Null).await?;
    Ok(PageResponse::redirect("/console/access?done=key-revoked"))
}
