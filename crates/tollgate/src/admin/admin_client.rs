//! A client of a server's admin API.

use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::Result;
use hyper::{Method, StatusCode};
use serde_json::Value;

use crate::client::{ApiCall, ApiClient, ApiProblem, ApiResponse, BrokenConnection};
use crate::output::Output;
use tollgate_terminal::human_duration;

/// Timeout of a call: longer than the server waits for its database.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout of calls that read or write everything.
const LONG_TIMEOUT: Duration = Duration::from_secs(600);
/// Longest response: an export, or a page of rules.
const RESPONSE_BYTES_MAX: usize = 64 << 20;
/// Time after which progress is shown.
const PROGRESS_AFTER: Duration = Duration::from_millis(600);

/// A client of a server's admin API.
pub struct AdminClient {
    pub(super) client: ApiClient,
    /// Sent with every call.
    pub(super) namespace: Option<String>,
    /// True if a token is sent.
    pub(super) has_token: bool,
}

impl AdminClient {
    /// A call that is not sent yet.
    pub fn call(&self, method: Method, segments: &[&str]) -> ApiCall {
        let call = ApiCall::new(method, segments).timeout(TIMEOUT).response_bytes_max(RESPONSE_BYTES_MAX);
        call.query_some("namespace", self.namespace.as_deref())
    }

    /// A GET call that is not sent yet.
    pub fn get(&self, segments: &[&str]) -> ApiCall {
        self.call(Method::GET, segments)
    }

    /// Sends a call; a problem document is an error.
    pub fn send(&mut self, call: &ApiCall) -> Result<ApiResponse> {
        let response = self.client.send(call)?;
        self.check_status(response)
    }

    /// A call that names its namespace in its body.
    pub fn call_of_all(&self, method: Method, segments: &[&str]) -> ApiCall {
        ApiCall::new(method, segments).timeout(TIMEOUT).response_bytes_max(RESPONSE_BYTES_MAX)
    }

    /// Sends a call, and passes the events of the response on until there are no more, or enough.
    pub fn listen(&mut self, call: &ApiCall, receive: impl FnMut(&str, &str) -> Result<ControlFlow<()>>) -> Result<()> {
        match self.client.listen(call, receive)? {
            Some(response) => self.check_status(response).map(drop),
            None => Ok(()),
        }
    }

    /// Sleeps.
    pub fn wait(&self, time: Duration) {
        self.client.wait(time);
    }

    /// Sends a call with an idempotency key, and retries once if the connection breaks: the server executes it once.
    pub fn send_once(&mut self, call: &ApiCall) -> Result<ApiResponse> {
        match self.client.send(call) {
            Err(error) if error.is::<BrokenConnection>() => self.send(call),
            response => self.check_status(response?),
        }
    }

    /// Sends a call that may take long, and shows progress on a terminal.
    pub fn send_long(&mut self, call: &ApiCall, what: &str, out: &mut Output) -> Result<ApiResponse> {
        let call = call.clone().timeout(LONG_TIMEOUT);
        let response = self.client.send_watched(&call, |waited| {
            if waited >= PROGRESS_AFTER {
                let tenths = Duration::from_millis(u64::try_from(waited.as_millis()).unwrap_or(u64::MAX) / 100 * 100);
                out.progress(&format!("{what} ... {}", human_duration(span(tenths))));
            }
        });
        out.progress("");
        self.check_status(response?)
    }

    /// Fetches one resource and its ETag.
    pub fn fetch(&mut self, segments: &[&str]) -> Result<(Value, String)> {
        let call = self.get(segments);
        let response = self.send(&call)?;
        // A resource without a version cannot be changed; the server explains why.
        let etag = response.etag.clone().unwrap_or_else(|| "*".to_owned());
        Ok((response.json()?, etag))
    }

    fn check_status(&self, response: ApiResponse) -> Result<ApiResponse> {
        response.ok().map_err(|error| match error.downcast::<ApiProblem>() {
            Ok(problem) => self.with_advice(problem).into(),
            Err(error) => error,
        })
    }

    fn with_advice(&self, problem: ApiProblem) -> ApiProblem {
        match (problem.status, problem.code.as_str()) {
            (StatusCode::UNAUTHORIZED, _) if !self.has_token => problem.with_advice(
                "no token was sent: set TOLLGATE_TOKEN, or name a file with --token-file; the first start of a \
                server printed one, or wrote it to the file admin-token beside its database; `tollgate db token` \
                creates another, on a machine that can reach the database",
            ),
            (StatusCode::UNAUTHORIZED, _) => {
                problem.with_advice("the token is unknown, revoked or expired; was it issued by this server?")
            }
            (StatusCode::NOT_FOUND, "no_such_path") => problem
                .with_advice("is this the admin listener? it is http://127.0.0.1:8090 unless `admin` says otherwise"),
            (StatusCode::PRECONDITION_FAILED, _) => problem
                .with_detail("it was changed in the meantime; nothing was written")
                .with_advice("check its current state, then try again"),
            _ => problem,
        }
    }
}

fn span(time: Duration) -> tollgate_core::Span {
    tollgate_core::Span::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
