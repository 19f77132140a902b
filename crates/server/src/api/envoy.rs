//! What envoyproxy/ratelimit answers over HTTP: `POST /json` and `GET /healthcheck`.

use super::Shared;
use super::refuse::say;
use crate::Reply;
use crate::answer::{Problem, problem};
use crate::envoy_rls::{self, Refused};

/// Decides a `RateLimitRequest`: 200 if it may pass, 429 if not, 400 for what is none.
pub(super) async fn json(shared: &Shared, body: &[u8], reply: &mut Reply) {
    let request = match envoy_rls::read_json(body) {
        Ok(request) => request,
        Err(unreadable) => {
            let field = Some(unreadable.field.as_str()).filter(|field| !field.is_empty());
            return refuse(400, "bad_request", unreadable.detail, field, reply);
        }
    };
    match envoy_rls::should_rate_limit(shared, &request).await {
        Ok(response) => {
            let (status, body) = envoy_rls::write_json(&response);
            say(status, &body, reply);
        }
        Err(refused @ Refused::Invalid(_)) => refuse(400, "bad_request", &refused.to_string(), None, reply),
        Err(refused @ Refused::StoreAway) => refuse(503, "store_unavailable", &refused.to_string(), None, reply),
    }
}

fn refuse(status: u16, code: &'static str, detail: &str, field: Option<&str>, reply: &mut Reply) {
    let title = if status == 400 { "Bad request" } else { "Service unavailable" };
    problem(&Problem { status, code, title, detail, field }, reply);
}

/// `OK`, or 500 from the moment on that this node goes.
pub(super) fn health(shared: &Shared, reply: &mut Reply) {
    reply.clear();
    reply.fields.push("Content-Type", "text/plain; charset=utf-8");
    reply.fields.push("Cache-Control", "no-store");
    match shared.drain.has_begun() {
        true => reply.status = 500,
        false => reply.body.extend_from_slice(b"OK"),
    }
}
