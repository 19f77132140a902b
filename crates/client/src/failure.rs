//! Why there is no decision: the request, or the server.

use std::fmt;

/// Code of a value that is longer than the server reads.
pub(crate) const VALUE_TOO_LONG: &str = "value_too_long";
/// Code of a request that is longer than the server reads.
pub(crate) const BODY_TOO_LARGE: &str = "body_too_large";

/// The request cannot be decided: it was charged nothing, and the same request will be rejected again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRejected {
    /// Stable, for programs: `path_escaped_slash`, `bad_method`, `unknown_receipt` …
    pub code: String,
    /// What to do about it.
    pub detail: String,
}

impl RequestRejected {
    /// True if a text of the application's own caller is at fault, who is to be answered 400: the path or the method of
    /// the endpoint, a value that is too long or no text, or all of them together.
    pub fn is_endpoint(&self) -> bool {
        let others = ["bad_method", VALUE_TOO_LONG, "bad_text", BODY_TOO_LARGE];
        self.code.starts_with("path_") || others.contains(&self.code.as_str())
    }
}

/// The server gave no decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// What happened.
    pub kind: OutageKind,
    /// The cause, without keys and tokens.
    pub detail: String,
}

/// What happened in place of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutageKind {
    /// No connection: nothing was sent.
    Connect,
    /// The connection broke, or the answer was cut off: the call may have been processed.
    Broken,
    /// No answer in time: the call may have been processed.
    Timeout,
    /// A status that is no answer.
    Status(u16),
    /// An answer that cannot be read.
    Unreadable,
    /// The server does not accept the token, or it is for another namespace.
    Unauthorized,
    /// The server rejected what the application sent, other than the endpoint.
    Rejected,
    /// The server failed before and is left alone: nothing was sent.
    CircuitOpen,
}

impl OutageKind {
    /// True if the server is in trouble, and not the call.
    pub(crate) fn blames_the_server(self) -> bool {
        !matches!(self, OutageKind::Unauthorized | OutageKind::Rejected | OutageKind::CircuitOpen)
    }
}

/// Why a call about a reservation or about usage has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The call cannot succeed.
    Rejected(RequestRejected),
    /// The server gave no answer. Settling, extending and releasing can be repeated: they happen once.
    Outage(Outage),
}

impl Outage {
    pub(crate) fn new(kind: OutageKind, detail: impl fmt::Display) -> Outage {
        let detail: String = detail.to_string().chars().take(200).collect();
        Outage { kind, detail }
    }
}

impl From<Outage> for CallError {
    fn from(outage: Outage) -> CallError {
        CallError::Outage(outage)
    }
}

impl fmt::Display for RequestRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            OutageKind::Connect => "cannot connect to the rate limiter",
            OutageKind::Broken => "the rate limiter broke the connection",
            OutageKind::Timeout => "the rate limiter did not answer in time",
            OutageKind::Status(status) => return write!(f, "the rate limiter answered {status}: {}", self.detail),
            OutageKind::Unreadable => "the rate limiter's answer cannot be read",
            OutageKind::Unauthorized => "the rate limiter does not accept the token",
            OutageKind::Rejected => "the rate limiter rejected the request",
            OutageKind::CircuitOpen => "the rate limiter failed before and is left alone",
        };
        write!(f, "{what}: {}", self.detail)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Rejected(rejected) => rejected.fmt(f),
            CallError::Outage(outage) => outage.fmt(f),
        }
    }
}

impl std::error::Error for RequestRejected {}
impl std::error::Error for Outage {}
impl std::error::Error for CallError {}
