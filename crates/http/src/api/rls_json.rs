//! Envoy's rate limit service over HTTP, as envoyproxy/ratelimit offers it: `POST /json` and `GET /healthcheck`.

use tollgate_service::Reply;
use tollgate_service::refusal::{OTHER_NAMESPACE, write_json};
use tollgate_service::render::{ProblemDetails, write_problem};
use tollgate_service::rls::{self, RlsError};

use super::{DataApi, PreparedCall};

impl DataApi {
    /// Decides a `RateLimitRequest`: 200 if allowed, 429 if denied, 503 if denied because the store is unavailable, 400
    /// if malformed.
    pub(super) async fn rls_json(&self, call: PreparedCall, body: &[u8], reply: &mut Reply) {
        let request = match rls::read_json(body) {
            Ok(request) => request,
            Err(error) => {
                let field = Some(error.field.as_str()).filter(|field| !field.is_empty());
                return write_error(400, "bad_request", error.detail, field, reply);
            }
        };
        if !self.service.may_ask(call.scope, &request.domain) {
            return OTHER_NAMESPACE.write(reply);
        }
        match self.service.rate_limit(&request).await {
            Ok(answer) => {
                let (status, body) = rls::write_json(&answer.response);
                write_json(if answer.is_closed { 503 } else { status }, &body, reply);
            }
            Err(error @ RlsError::Invalid(_)) => write_error(400, "bad_request", &error.to_string(), None, reply),
            Err(error @ RlsError::StoreUnavailable) => {
                write_error(503, "store_unavailable", &error.to_string(), None, reply);
            }
        }
    }

    /// 200 `OK`, or 500: the same state as gRPC's health service.
    pub(super) async fn rls_health(&self, reply: &mut Reply) {
        let is_serving = !self.drain.is_announced() && self.service.store_was_reachable().await;
        let (status, body) = if is_serving { (200, "OK") } else { (500, "") };
        reply.clear();
        reply.status = status;
        reply.fields.push("Content-Type", "text/plain; charset=utf-8");
        reply.fields.push("Cache-Control", "no-store");
        reply.body.extend_from_slice(body.as_bytes());
    }
}

fn write_error(status: u16, code: &'static str, detail: &str, field: Option<&str>, reply: &mut Reply) {
    let title = if status == 400 { "Bad request" } else { "Service unavailable" };
    write_problem(&ProblemDetails { status, code, title, detail, field }, reply);
}
