//! Calls of the data API from its page: in the process, through the handler that the data listener has.
//!
//! The page is served by the admin listener, and a browser there may not call another origin. So the console makes the
//! call. The data API checks its own tokens as ever; only operations of its description can be called.

use http::StatusCode;
use serde_json::Value;
use tollgate_http::DataApi;
use tollgate_net::Peer;
use tollgate_service::Reply;
use tollgate_web::{Handler as _, Head, handle_or_fail};

/// One call.
pub(crate) struct DataCall<'a> {
    /// `GET` or `POST`.
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) body: &'a str,
    /// A token of the data API; empty if the server needs none.
    pub(crate) token: &'a str,
}

/// What was answered.
pub(crate) struct DataCallResponse {
    /// Status and reason.
    pub(crate) status: String,
    /// True for a status below 400.
    pub(crate) is_success: bool,
    /// The fields, one to a line.
    pub(crate) fields: String,
    /// The body, indented if it is JSON.
    pub(crate) body: String,
}

impl DataCall<'_> {
    /// Makes the call.
    pub(crate) async fn send(&self, api: &DataApi, peer: &Peer) -> DataCallResponse {
        let authorization = format!("Bearer {}", self.token);
        let head = Head {
            method: self.method,
            path: self.path,
            query: Some(self.query).filter(|query| !query.is_empty()),
            authorization: Some(authorization.as_bytes()).filter(|_| !self.token.is_empty()),
            content_type: Some(b"application/json".as_slice()).filter(|_| self.method == "POST"),
            ..Head::default()
        };
        let body = if self.method == "POST" { self.body.as_bytes() } else { b"" };
        let mut reply = Reply::default();
        reply.clear();
        let prepared = api.prepare(peer, &head, &mut reply);
        match &prepared {
            Some((_, max_bytes)) if body.len() > *max_bytes => {
                api.reject(tollgate_web::HttpError::BodyTooLarge, &mut reply);
            }
            Some((prepared, _)) => handle_or_fail(api, prepared, body, &mut reply).await,
            None => {}
        }
        api.completed(prepared.as_ref().map(|(prepared, _)| prepared), reply.status);
        read(&reply)
    }
}

fn read(reply: &Reply) -> DataCallResponse {
    let reason = StatusCode::from_u16(reply.status).ok().and_then(|status| status.canonical_reason());
    let text = String::from_utf8_lossy(&reply.body);
    let json: Option<Value> = serde_json::from_slice(&reply.body).ok();
    DataCallResponse {
        status: format!("{} {}", reply.status, reason.unwrap_or_default()),
        is_success: reply.status < 400,
        fields: fields(reply),
        body: json.and_then(|json| serde_json::to_string_pretty(&json).ok()).unwrap_or_else(|| text.into_owned()),
    }
}

fn fields(reply: &Reply) -> String {
    let lines = reply.fields.iter().map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value)));
    lines.collect::<Vec<String>>().join("\n")
}
