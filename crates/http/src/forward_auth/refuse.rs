//! Checks that cannot be read. Nothing is charged for them, and nothing that was sent is repeated.

use std::fmt;

use tollgate_service::Reply;
use tollgate_service::render::{ProblemDetails, write_problem};

/// Why a check cannot be read; with the header field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthError {
    /// The caller shows no token that is known.
    NoToken,
    /// Nothing says who the client is.
    NoClient,
    /// The field that says what was asked is not there.
    NoOriginal(&'static str),
    /// The field does not name a path.
    NotATarget(&'static str),
    /// Two fields say what was asked.
    Both(&'static str, &'static str),
    /// The field stands there more than once.
    Repeated(String),
    /// The field holds bytes that are no visible text.
    NotText(String),
    /// The field is no cost.
    BadCost(String),
}

impl AuthError {
    const fn code(&self) -> &'static str {
        match self {
            AuthError::NoToken => "no_token",
            AuthError::NoClient => "no_client_address",
            AuthError::NoOriginal(_) => "no_original_request",
            AuthError::NotATarget(_) => "bad_original_request",
            AuthError::Both(..) => "two_original_requests",
            AuthError::Repeated(_) => "repeated_header",
            AuthError::NotText(_) => "bad_header",
            AuthError::BadCost(_) => "bad_cost",
        }
    }

    /// Fills the reply. Of statuses that mean "ask somebody else" there are none: a client would take them for its own.
    pub fn write(&self, deny_status: u16, reply: &mut Reply) {
        let status = match self {
            AuthError::NoToken => 403,
            _ => bad_request(deny_status),
        };
        let title = if status == 403 { "Forbidden" } else { "Bad request" };
        write_problem(
            &ProblemDetails { status, code: self.code(), title, detail: &self.to_string(), field: None },
            reply,
        );
    }
}

/// Fills the reply where forward-auth is off.
pub fn write_off(reply: &mut Reply) {
    let detail = "Forward-auth is off: start with --auth-source forwarded, original or path.";
    write_problem(
        &ProblemDetails { status: 404, code: "forward_auth_off", title: "Not found", detail, field: None },
        reply,
    );
}

/// Fills the reply for a head that cannot be read, where the proxy understands 403 alone.
pub fn write_unreadable_head(reply: &mut Reply) {
    let detail = "The head of the check cannot be read: it is too large, or not HTTP as it should be.";
    write_problem(
        &ProblemDetails { status: 403, code: "unreadable_head", title: "Forbidden", detail, field: None },
        reply,
    );
    reply.close = true;
}

/// The status of what is no request: where the proxy understands 403 alone, that.
pub const fn bad_request(deny_status: u16) -> u16 {
    if deny_status == 403 { 403 } else { 400 }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuthError::NoToken => {
                f.write_str("The proxy must send a token that this server knows: Authorization: Bearer TOKEN.")
            }
            AuthError::NoClient => f.write_str(
                "Over a Unix domain socket the proxy must say who asks: X-Forwarded-For with an address, and trusted_hops \
                 not 0.",
            ),
            AuthError::NoOriginal(name) => {
                write!(f, "The header {name} is missing: the proxy must send it, or auth_source be another.")
            }
            AuthError::NotATarget(name) => write!(f, "The header {name} does not name a path."),
            AuthError::Both(one, other) => write!(f, "The headers {one} and {other} are both there: which one counts?"),
            AuthError::Repeated(name) => write!(f, "The header {name} is there more than once: which one counts?"),
            AuthError::NotText(name) => write!(f, "The header {name} holds more than visible ASCII and spaces."),
            AuthError::BadCost(name) => write!(f, "The header {name} is not a whole number from 0 to 9007199254740991."),
        }
    }
}
