//! Responses to checks that cannot be read. They charge nothing and do not echo what was sent.

use std::fmt;

use tollgate_service::Reply;
use tollgate_service::render::{ProblemDetails, write_problem};

/// Why a check cannot be read, with the header field at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthError {
    /// The proxy sent no known token.
    NoToken,
    /// No address of the client.
    NoClient,
    /// The field with the original request is missing.
    NoOriginal(&'static str),
    /// The field does not name a path.
    NotATarget(&'static str),
    /// Two fields name the original target.
    Both(&'static str, &'static str),
    /// The field is repeated.
    Repeated(String),
    /// The field holds bytes other than visible ASCII and spaces.
    NotText(String),
    /// The field is not a valid cost.
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

    /// Fills the reply. Never 401: the client would take it for a demand for its own credentials.
    pub fn write(&self, deny_status: u16, reply: &mut Reply) {
        let status = match self {
            AuthError::NoToken => 403,
            _ => bad_request_status(deny_status),
        };
        let title = if status == 403 { "Forbidden" } else { "Bad request" };
        write_problem(
            &ProblemDetails { status, code: self.code(), title, detail: &self.to_string(), field: None },
            reply,
        );
    }
}

/// Fills the reply if forward-auth is off.
pub fn write_disabled(reply: &mut Reply) {
    let detail = "Forward-auth is off: start with --auth-source forwarded, original or path.";
    write_problem(
        &ProblemDetails { status: 404, code: "forward_auth_off", title: "Not found", detail, field: None },
        reply,
    );
}

/// Fills the reply to a head that cannot be read, for proxies that understand only 403.
pub fn write_unreadable_head(reply: &mut Reply) {
    let detail = "The head of the check cannot be read: it is too large, or not valid HTTP.";
    write_problem(
        &ProblemDetails { status: 403, code: "unreadable_head", title: "Forbidden", detail, field: None },
        reply,
    );
    reply.close = true;
}

/// The status for a malformed check: 403 for proxies that understand only 403.
pub const fn bad_request_status(deny_status: u16) -> u16 {
    if deny_status == 403 { 403 } else { 400 }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuthError::NoToken => {
                f.write_str("The proxy must send a token that this server knows: Authorization: Bearer TOKEN.")
            }
            AuthError::NoClient => f.write_str(
                "Over a Unix domain socket the proxy must send X-Forwarded-For with the client address, and trusted_hops must \
                 not be 0.",
            ),
            AuthError::NoOriginal(name) => {
                write!(f, "The header {name} is missing: the proxy must send it, or auth_source must be changed.")
            }
            AuthError::NotATarget(name) => write!(f, "The header {name} does not name a path."),
            AuthError::Both(one, other) => write!(f, "The headers {one} and {other} are both there: which one counts?"),
            AuthError::Repeated(name) => write!(f, "The header {name} is there more than once: which one counts?"),
            AuthError::NotText(name) => write!(f, "The header {name} holds more than visible ASCII and spaces."),
            AuthError::BadCost(name) => write!(f, "The header {name} is not a whole number from 0 to 9007199254740991."),
        }
    }
}
