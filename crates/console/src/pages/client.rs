//! Everything that one client meets: its entry, every rule with what is left, overrides, quotas, recent decisions.

use std::collections::BTreeSet;

use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::{PageResult, framed, overrides, penalties, traffic};
use crate::api::CallProblem;
use crate::chart::meter;
use crate::format::{duration, grouped, when};
use crate::json::{count, is_true, list, member, plain, text};
use crate::layout::{Framed, NavigationEntry, form_token};
use crate::operator::Operator;
use crate::page_call::PageCall;
use crate::parameters::{encoded, url};
use crate::parts::{badge, client_link, field, heading, limit_words, rule_link, trouble};

pub(super) async fn show(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let (namespace, key) = (call.query.given("namespace").unwrap_or(operator.home()), call.query.get("key"));
    let of_client = |path: &str| url(path, &[("namespace", namespace), ("client_key", key), ("limit", "50")]);
    let api = &operator.api;
    let entry = api.find(&url(&format!("/v1/clients/{}", encoded(key)), &[("namespace", namespace)])).await;
    let entry = entry.unwrap_or_default();
    let is_digest = is_digest(key);
    let none = ClientStates { rules: Vec::new(), untried: 0 };
    let states = if is_digest { Ok(none) } else { states(operator, namespace, key).await };
    let held = api.find(&of_client("/v1/overrides")).await.unwrap_or_default();
    let quotas = api.find(&of_client("/v1/usage")).await.unwrap_or_default();
    let now_ms = call.now_ms();
    let back = format!("client:{key}");
    let rules: Vec<&str> = match &states {
        Ok(states) => states.rules.iter().map(|rule| text(rule, "name")).collect(),
        Err(_) => Vec::new(),
    };
    let untried = states.as_ref().map_or(0, |states| states.untried);
    let explain = url("/console/explain", &[("namespace", namespace), ("request", &format!("client_key={key}"))]);
    let actions = html! {
        @if !is_digest { a class="button" href=(explain.as_str()) { "Explain a request" } }
        @if operator.may("operator") && !is_digest {
            (overrides::grant_form(operator, namespace, key, &rules, &back))
            (traffic::reset_form(operator, namespace, key, &rules, &back))
        }
    };
    let body = html! {
        (heading(key, about(namespace, key, &entry), actions))
        (penalties::of_client(operator, namespace, key, now_ms, &back).await)
        (traffic::of_client(operator, call, namespace, key).await)
        @if is_digest {
            p class="note" { "This is the digest of a key: keys are not kept in plain text here, or your token may not see them. With the key itself, this page shows what each rule has left. The setting " code { "violations_plain_keys" } " keeps keys as they are." }
        } @else { section {
            h2 { "Rules that it meets" }
            @match &states {
                Err(problem) => { (trouble(problem)) }
                Ok(states) if states.rules.is_empty() => { p class="dim" { "No rule is kept for this client. Rules of other keys, such as addresses, may still apply to its requests." } }
                Ok(states) => { (state_table(namespace, &states.rules)) }
            }
            @if untried > 0 {
                p class="dim" { (grouped(untried as u64)) " more endpoints of rules were not tried: " a href=(explain.as_str()) { "explain a request" } " to see what it meets there." }
            }
        } }
        section {
            h2 { "Overrides" }
            @if list(&held, "overrides").is_empty() { p class="dim" { "None: its limits are those of the rules." } }
            @else { (overrides::table(operator, &held, now_ms, &back)) }
        }
        @if !list(&quotas, "usage").is_empty() {
            section { h2 { "Quotas" } (quota_table(namespace, &quotas, now_ms)) }
        }
        (traffic::decisions_of_client(operator, namespace, key, now_ms).await)
        @if operator.may("operator") && !is_digest { (entry_form(operator, namespace, key, &entry)) }
    };
    framed(
        operator,
        Framed { title: key, section: NavigationEntry::Clients, live: None, done: call.query.get("done"), body },
    )
}

/// True for what is shown of a key that is not kept: `user:#` and hexadecimal digits.
fn is_digest(key: &str) -> bool {
    let digits = key.rsplit(':').next().and_then(|part| part.strip_prefix('#'));
    digits.is_some_and(|digits| digits.len() >= 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn about(namespace: &str, key: &str, entry: &Value) -> Markup {
    let organisation = text(entry, "organisation");
    html! {
        @if entry.is_null() { "Not in the directory of " code { (namespace) } "; limits hold for it all the same." } @else {
            @for (name, value) in [("tier", text(entry, "tier")), ("plan", text(entry, "plan"))] {
                @if !value.is_empty() { span class="condition" { span class="dim" { (name) } " " strong { (value) } } " " }
            }
            @if !organisation.is_empty() && !key.starts_with("org:") { span class="condition" { span class="dim" { "organisation" } " " (client_link(namespace, &format!("org:{organisation}"))) } " " }
            @if member(entry, "attributes").as_object().is_some_and(|attributes| !attributes.is_empty()) { span class="dim" { (plain(member(entry, "attributes"))) } }
        }
    }
}

/// What rules have left for the client.
struct ClientStates {
    rules: Vec<Value>,
    /// Endpoints of rules that were not tried.
    untried: usize,
}

/// What each rule that is kept for the client has left. A request without an endpoint meets few rules, so the endpoints of
/// rules are tried too: first of those that decided about the client lately.
async fn states(operator: &Operator<'_>, namespace: &str, key: &str) -> Result<ClientStates, CallProblem> {
    let first = explain(operator, namespace, key, "").await?;
    let lately = url("/v1/decisions", &[("namespace", namespace), ("client", key), ("limit", "50")]);
    let lately = operator.api.find(&lately).await.unwrap_or_default();
    let lately: BTreeSet<&str> = list(&lately, "decisions").iter().map(|decision| text(decision, "rule")).collect();
    let mut rules: Vec<Value> = applied(&first).cloned().collect();
    let sample = |rule: &Value| Some((!lately.contains(text(rule, "name")), sample_endpoint(rule)?));
    let mut endpoints: Vec<(bool, String)> = list(&first, "rules").iter().filter_map(sample).collect();
    endpoints.sort();
    endpoints.dedup_by(|later, first| later.1 == first.1);
    for (_, endpoint) in endpoints.iter().take(ENDPOINTS_MAX) {
        let Ok(more) = explain(operator, namespace, key, endpoint).await else { continue };
        for rule in applied(&more) {
            if !rules.iter().any(|known| text(known, "name") == text(rule, "name")) {
                rules.push(rule.clone());
            }
        }
    }
    Ok(ClientStates { rules, untried: endpoints.len().saturating_sub(ENDPOINTS_MAX) })
}

/// Endpoints that are tried.
const ENDPOINTS_MAX: usize = 12;

async fn explain(operator: &Operator<'_>, namespace: &str, key: &str, endpoint: &str) -> Result<Value, CallProblem> {
    let mut request = Map::new();
    request.insert("namespace".to_owned(), namespace.into());
    request.insert("client_key".to_owned(), key.into());
    if !endpoint.is_empty() {
        request.insert("endpoint".to_owned(), endpoint.into());
    }
    operator.api.explain(&Value::Object(request)).await
}

/// Rules that apply and are kept for the client.
fn applied(explained: &Value) -> impl Iterator<Item = &Value> {
    list(explained, "rules").iter().filter(|rule| is_true(rule, "applies") && !list(rule, "key").is_empty())
}

/// An endpoint that a rule matches: its pattern, with the stars filled in.
fn sample_endpoint(rule: &Value) -> Option<String> {
    let pattern = list(rule, "match.endpoint").first()?.as_str()?;
    Some(pattern.split(' ').map(|part| part.replace("**", "x").replace('*', "x")).collect::<Vec<_>>().join(" "))
}

fn state_table(namespace: &str, states: &[Value]) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Rules" {
            table class="list" {
                thead { tr { th { "Rule" } th { "State" } th class="number" { "Left" } th { "Limit" } th class="wide" { "Used" } } }
                tbody {
                    @for rule in states {
                        @let (used, left) = (count(rule, "used_before"), count(rule, "remaining_before"));
                        @let is_full = rule.get("allowed") == Some(&Value::Bool(false));
                        tr {
                            td { (rule_link(namespace, text(rule, "name"))) @if member(rule, "override").is_object() { " " (badge("override")) } }
                            td {
                                (badge(if !is_full { "ok" } else if text(rule, "mode") == "shadow" { "would deny" } else { "denied" }))
                                @if is_full { " " span class="dim" { "again in " (duration(count(rule, "retry_after_ms"))) } }
                            }
                            td class="number" { @if is_true(rule, "unlimited") { "unlimited" } @else { (grouped(left)) } }
                            td class="number-words" { (limit_words(rule)) }
                            td { @if !is_true(rule, "unlimited") { (meter(used, used + left, if is_full { "bad" } else { "good" })) span class="dim" { (grouped(used)) " used" } } }
                        }
                    }
                }
            }
        }
    }
}

fn quota_table(namespace: &str, quotas: &Value, now_ms: u64) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Quotas" {
            table class="list" {
                thead { tr { th { "Rule" } th class="wide" { "Used" } th class="number" { "Of" } th { "Period ends" } } }
                tbody {
                    @for quota in list(quotas, "usage") {
                        tr {
                            td { (rule_link(namespace, text(quota, "rule_id"))) }
                            td { (meter(count(quota, "used"), count(quota, "limit_value"), "good")) span class="dim" { (grouped(count(quota, "used"))) } }
                            td class="number" { (grouped(count(quota, "limit_value"))) }
                            td { (when(text(quota, "period_end"), now_ms)) }
                        }
                    }
                }
            }
        }
    }
}

fn entry_form(operator: &Operator<'_>, namespace: &str, key: &str, entry: &Value) -> Markup {
    html! {
        details class="confirm" {
            summary class="button" { @if entry.is_null() { "Put into the directory…" } @else { "Edit the entry…" } }
            form method="post" action="/console/client/save" {
                (form_token(operator))
                input type="hidden" name="namespace" value=(namespace);
                input type="hidden" name="key" value=(key);
                @if let Some(version) = entry.get("version") { input type="hidden" name="version" value=(plain(version)); }
                p { "Requests that name only the key have what stands here." }
                (field("Tier", "tier", text(entry, "tier"), ""))
                (field("Plan", "plan", text(entry, "plan"), ""))
                (field("Organisation", "organisation", text(entry, "organisation"), ""))
                button class="button primary" { "Save the entry" }
            }
        }
    }
}

/// Makes or replaces the entry of the directory; other attributes stay.
pub(super) async fn save(call: &PageCall<'_>, operator: &Operator<'_>) -> PageResult {
    let (form, key) = (&call.form, call.form.get("key"));
    let value = |name: &str| form.given(name).map_or(Value::Null, Value::from);
    let mut body = json!({ "tier": value("tier"), "plan": value("plan"), "organisation": value("organisation") });
    let in_namespace = [("namespace", form.get("namespace"))];
    match form.get("version") {
        "" => {
            if let Some(members) = body.as_object_mut() {
                members.retain(|_, value| !value.is_null());
                members.insert("client_key".to_owned(), key.into());
            }
            operator.api.send("POST", &url("/v1/clients", &in_namespace), &body).await?;
        }
        version => {
            let target = url(&format!("/v1/clients/{}", encoded(key)), &in_namespace);
            operator.api.send_if("PATCH", &target, &body, &format!("\"{version}\"")).await?;
        }
    }
    let parameters = [("namespace", form.get("namespace")), ("key", key), ("done", "client-saved")];
    Ok(crate::response::PageResponse::redirect(url("/console/client", &parameters)))
}
