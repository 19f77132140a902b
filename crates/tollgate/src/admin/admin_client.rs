//! The admin API of one server, as one of its users.

use std::time::Duration;

use anyhow::Result;
use hyper::{Method, StatusCode};
use serde_json::Value;

use crate::client::{Answer, Broken, Call, Client, Refusal};
use crate::output::Output;
use crate::render::for_people;

/// Longer than the server waits for its database.
const PATIENCE: Duration = Duration::from_secs(15);
/// For what reads or writes everything.
const LONG: Duration = Duration::from_secs(600);
/// An export may be as long as what can be imported, and a page of rules long.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Before that, nobody wonders whether something is still going on.
const QUIET: Duration = Duration::from_millis(600);

/// A server's admin API, as one of its users.
pub struct Admin {
    pub(super) client: Client,
    /// Sent along with every call.
    pub(super) namespace: Option<String>,
    /// Whether any token is presented.
    pub(super) has_token: bool,
}

impl Admin {
    /// A call, not sent yet.
    pub fn call(&self, method: Method, segments: &[&str]) -> Call {
        let call = Call::new(method, segments).patience(PATIENCE).answer_bytes_max(ANSWER_BYTES_MAX);
        call.query_some("namespace", self.namespace.as_deref())
    }

    /// A call that reads.
    pub fn get(&self, segments: &[&str]) -> Call {
        self.call(Method::GET, segments)
    }

    /// Sends a call; a refusal is an error.
    pub fn send(&mut self, call: &Call) -> Result<Answer> {
        let answer = self.client.send(call)?;
        self.understood(answer)
    }

    /// Sends a call that carries an idempotency key. One whose connection broke is sent once more: whether or not the
    /// first arrived, it is done once.
    pub fn send_once(&mut self, call: &Call) -> Result<Answer> {
        match self.client.send(call) {
            Err(error) if error.is::<Broken>() => self.send(call),
            answer => self.understood(answer?),
        }
    }

    /// Sends a call that may take long, and tells a person who waits that it goes on.
    pub fn send_long(&mut self, call: &Call, what: &str, out: &mut Output) -> Result<Answer> {
        let call = call.clone().patience(LONG);
        let answer = self.client.send_watched(&call, |waited| {
            if waited >= QUIET {
                let tenths = Duration::from_millis(u64::try_from(waited.as_millis()).unwrap_or(u64::MAX) / 100 * 100);
                out.progress(&format!("{what} ... {}", for_people(span(tenths))));
            }
        });
        out.progress("");
        self.understood(answer?)
    }

    /// Reads one thing, and its version.
    pub fn fetch(&mut self, segments: &[&str]) -> Result<(Value, String)> {
        let call = self.get(segments);
        let answer = self.send(&call)?;
        // What has no version cannot be changed here; the server says why, if somebody tries.
        let etag = answer.etag.clone().unwrap_or_else(|| "*".to_owned());
        Ok((answer.json()?, etag))
    }

    fn understood(&self, answer: Answer) -> Result<Answer> {
        answer.ok().map_err(|error| match error.downcast::<Refusal>() {
            Ok(refusal) => self.advised(refusal).into(),
            Err(error) => error,
        })
    }

    fn advised(&self, refusal: Refusal) -> Refusal {
        match (refusal.status, refusal.code.as_str()) {
            (StatusCode::UNAUTHORIZED, _) if !self.has_token => refusal.advised(
                "no token was presented: set TOLLGATE_TOKEN, or name a file with --token-file; the first start of a \
                 server showed one, or wrote it to the file admin-token beside its database; `tollgate db token` \
                 makes another where the database is",
            ),
            (StatusCode::UNAUTHORIZED, _) => {
                refusal.advised("the token is unknown here, revoked or expired; is this the server that it is for?")
            }
            (StatusCode::NOT_FOUND, "no_such_path") => {
                refusal.advised("is this the admin listener? it is http://127.0.0.1:8090 unless `admin` says otherwise")
            }
            (StatusCode::PRECONDITION_FAILED, _) => refusal
                .saying("somebody changed it in the meantime; nothing was written")
                .advised("look at what it is now, then try again"),
            _ => refusal,
        }
    }
}

fn span(time: Duration) -> tollgate_core::Span {
    tollgate_core::Span::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
