//! The console's client of the admin API: calls it in the process, through the door that every other client uses.
//!
//! A call carries the operator's token and passes admission, validation and audit as if it had come over the network. The
//! console therefore cannot do more than the API, and needs no permissions of its own.

use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;
use tollgate_admin::AdminApi;
use tollgate_net::Peer;
use tollgate_service::Reply;
use tollgate_web::{Handler, Head, handle_or_fail};

use crate::json::{list, number, text};

/// How long another explanation is waited for, and how often.
const TURN: Duration = Duration::from_millis(20);
const TURNS_MAX: u32 = 50;

/// Calls the admin API for one operator.
pub struct OperatorClient<'a> {
    /// The API.
    pub admin: &'a AdminApi,
    /// The browser's address, which bad tokens count against.
    pub peer: &'a Peer,
    /// The host that the browser called.
    pub host: Option<&'a [u8]>,
    /// The operator's token.
    pub token: &'a str,
}

/// A call.
#[derive(Clone, Copy, Debug, Default)]
pub struct OperatorCall<'a> {
    /// `GET` if it is empty.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// The body.
    pub body: &'a [u8],
    /// The body's media type; JSON if it is empty.
    pub media: &'a str,
    /// The field `If-Match`.
    pub if_match: &'a str,
}

/// A successful response.
#[derive(Clone, Debug, Default)]
pub struct CallResponse {
    /// The body.
    pub json: Value,
}

/// A call that failed: the problem document of the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallProblem {
    /// The status.
    pub status: u16,
    /// The stable name.
    pub code: String,
    /// What is wrong, and what to do.
    pub detail: String,
    /// Every fault.
    pub faults: Vec<Fault>,
}

/// One fault of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// Its path.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
    /// Line and column, if the body is a rules file.
    pub position: Option<(u64, u64)>,
}

impl OperatorClient<'_> {
    /// Reads JSON.
    pub async fn get(&self, target: &str) -> Result<Value, CallProblem> {
        self.call(OperatorCall { target, ..OperatorCall::default() }).await.map(|response| response.json)
    }

    /// Reads JSON that may be missing: a part of a page that says so instead.
    pub async fn find(&self, target: &str) -> Option<Value> {
        self.get(target).await.ok()
    }

    /// Sends JSON.
    pub async fn send(&self, method: &str, target: &str, body: &Value) -> Result<Value, CallProblem> {
        self.send_if(method, target, body, "").await
    }

    /// Sends JSON with `If-Match`.
    pub async fn send_if(&self, method: &str, target: &str, body: &Value, tag: &str) -> Result<Value, CallProblem> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let call = OperatorCall { method, target, body: body.as_bytes(), if_match: tag, ..OperatorCall::default() };
        self.call(call).await.map(|response| response.json)
    }

    /// Explains a request. The server makes one explanation at a time, and pages ask for several: waits for its turn.
    pub async fn explain(&self, request: &Value) -> Result<Value, CallProblem> {
        for _ in 0..TURNS_MAX {
            match self.send("POST", "/v1/explain", request).await {
                Err(problem) if problem.code == "busy" => sleep(TURN).await,
                explained => return explained,
            }
        }
        self.send("POST", "/v1/explain", request).await
    }

    /// Makes a call.
    pub async fn call(&self, call: OperatorCall<'_>) -> Result<CallResponse, CallProblem> {
        let mut reply = Reply::default();
        reply.clear();
        let prepared = self.prepare(&call, &mut reply);
        if let Some((prepared, max_bytes)) = &prepared {
            if call.body.len() > *max_bytes {
                return Err(CallProblem::new(413, "body_too_large", "This is too long."));
            }
            handle_or_fail(self.admin, prepared, call.body, &mut reply).await;
        }
        self.admin.completed(prepared.as_ref().map(|(prepared, _)| prepared), reply.status);
        read(&reply)
    }

    fn prepare(&self, call: &OperatorCall<'_>, reply: &mut Reply) -> Option<(<AdminApi as Handler>::Prepared, usize)> {
        let authorization = format!("Bearer {}", self.token);
        let (path, query) = match call.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (call.target, None),
        };
        let media = if call.media.is_empty() { "application/json" } else { call.media };
        let head = Head {
            method: if call.method.is_empty() { "GET" } else { call.method },
            path,
            query,
            authorization: Some(authorization.as_bytes()),
            content_type: Some(media.as_bytes()),
            host: self.host,
            if_match: Some(call.if_match.as_bytes()).filter(|tag| !tag.is_empty()),
            ..Head::default()
        };
        self.admin.prepare(self.peer, &head, reply)
    }
}

fn read(reply: &Reply) -> Result<CallResponse, CallProblem> {
    let json: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    if (200..300).contains(&reply.status) {
        return Ok(CallResponse { json });
    }
    let faults = list(&json, "errors").iter().map(|fault| Fault {
        field: text(fault, "field").to_owned(),
        message: text(fault, "message").to_owned(),
        help: text(fault, "help").to_owned(),
        position: number(fault, "line").zip(number(fault, "column")),
    });
    Err(CallProblem {
        faults: faults.collect(),
        ..CallProblem::new(reply.status, text(&json, "code"), text(&json, "detail"))
    })
}

impl CallProblem {
    /// A problem.
    pub fn new(status: u16, code: &str, detail: &str) -> CallProblem {
        CallProblem { status, code: code.to_owned(), detail: detail.to_owned(), faults: Vec::new() }
    }
}
