//! What envoyproxy/ratelimit answers over HTTP: `POST /json` and `GET /healthcheck`, and what it tells about itself.

use super::health::is_serving;
use super::refuse::{self as refusals, say};
use super::{Plan, Shared};
use crate::Reply;
use crate::answer::{Problem, problem};
use crate::envoy_rls::{self, Refused};
use crate::telemetry::CallEnd;

/// Decides a `RateLimitRequest`: 200 if it may pass, 429 if not, 503 if it is refused only because the store is away, 400
/// for what is none.
pub(super) async fn json(shared: &Shared, plan: Plan, body: &[u8], reply: &mut Reply) {
    let request = match envoy_rls::read_json(body) {
        Ok(request) => request,
        Err(unreadable) => {
            let field = Some(unreadable.field.as_str()).filter(|field| !field.is_empty());
            return refuse(400, "bad_request", unreadable.detail, field, reply);
        }
    };
    if !shared.may_ask(plan.pass, &request.domain) {
        return refusals::refuse(&refusals::OTHER_NAMESPACE, reply);
    }
    match envoy_rls::should_rate_limit(shared, &request, None).await {
        Ok(answered) => {
            let (status, body) = envoy_rls::write_json(&answered.response);
            say(if answered.is_closed { 503 } else { status }, &body, reply);
        }
        Err(refused @ Refused::Invalid(_)) => {
            shared.metrics.domains.calls.count(CallEnd::ServiceError);
            refuse(400, "bad_request", &refused.to_string(), None, reply);
        }
        Err(refused @ Refused::StoreAway) => {
            shared.metrics.domains.calls.count(CallEnd::StoreError);
            refuse(503, "store_unavailable", &refused.to_string(), None, reply);
        }
    }
}

fn refuse(status: u16, code: &'static str, detail: &str, field: Option<&str>, reply: &mut Reply) {
    let title = if status == 400 { "Bad request" } else { "Service unavailable" };
    problem(&Problem { status, code, title, detail, field }, reply);
}

/// `OK`, or 500: the same as gRPC's health says.
pub(super) async fn health(shared: &Shared, reply: &mut Reply) {
    match is_serving(shared).await {
        true => text(200, "OK", reply),
        false => text(500, "", reply),
    }
}

/// Every count that it has, a line each.
pub(super) fn stats(shared: &Shared, reply: &mut Reply) {
    let domains = &shared.metrics.domains;
    let (loads, failures) = shared.scrape.loads();
    let own = [
        ("call.should_rate_limit.redis_error", domains.calls.ended(CallEnd::StoreError)),
        ("call.should_rate_limit.service_error", domains.calls.ended(CallEnd::ServiceError)),
        ("config_load_error", failures),
        ("config_load_success", loads),
        ("global_shadow_mode", domains.calls.ended(CallEnd::Shadowed)),
    ];
    let mut lines = String::new();
    for (name, count) in own {
        lines += &format!("ratelimit.service.{name}: {count}\n");
    }
    for (name, count) in domains.all() {
        lines += &format!("ratelimit.service.rate_limit.{name}: {count}\n");
    }
    text(200, &lines, reply);
}

/// The rules of its files that are in force, a line each, as it prints them.
pub(super) fn rules(shared: &Shared, reply: &mut Reply) {
    let pinned = shared.engine.rules();
    let mut lines = String::new();
    for rule in pinned.rules.rules() {
        let Some(envoy) = rule.envoy.as_deref().filter(|envoy| !envoy.overrides) else { continue };
        let (requests, unit) = match envoy.limit {
            Some((requests, unit)) => (requests, unit.name().to_ascii_uppercase()),
            None => (0, "UNKNOWN".to_owned()), // unlimited
        };
        let (name, shadow, quota) = (envoy.full_key(), envoy.shadow_mode, envoy.quota_mode);
        lines +=
            &format!("{name}: unit={unit} requests_per_unit={requests}, shadow_mode: {shadow}, quota_mode: {quota}\n");
    }
    text(200, &lines, reply);
}

fn text(status: u16, body: &str, reply: &mut Reply) {
    reply.clear();
    reply.status = status;
    reply.fields.push("Content-Type", "text/plain; charset=utf-8");
    reply.fields.push("Cache-Control", "no-store");
    reply.body.extend_from_slice(body.as_bytes());
}
