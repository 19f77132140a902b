//! What handlers see of a request head, and why a message cannot be read.

use crate::received::Received;

/// The error for a `Host` that is no host and port.
pub const HOST_BAD: &str = "Host is not a host and perhaps a port";
/// The error for no `Host`, or several.
pub const HOSTS_MANY: &str = "there must be one Host";
/// The error for a target that names another host than `Host`.
pub const HOSTS_DIFFER: &str = "the target names another host than Host does";
/// The error for a `Content-Length` that is no number.
pub const LENGTH_BAD: &str = "Content-Length is not a number";
/// The error for the target `*` with another method than OPTIONS.
pub const ASTERISK: &str = "only OPTIONS is about the server as a whole";

/// Of a head, what the API looks at. The rest is read over, and can be asked for by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head<'a> {
    /// The method as it was sent.
    pub method: &'a str,
    /// The path, without query and, of an absolute target, without scheme and authority.
    pub path: &'a str,
    /// What follows the question mark.
    pub query: Option<&'a str>,
    /// The field `Authorization`.
    pub authorization: Option<&'a [u8]>,
    /// The field `Accept`.
    pub accept: Option<&'a [u8]>,
    /// The field `Content-Type`.
    pub content_type: Option<&'a [u8]>,
    /// The field `Content-Encoding`.
    pub content_encoding: Option<&'a [u8]>,
    /// The field `Host`; of HTTP/2, and of an absolute target without that field, the authority.
    pub host: Option<&'a [u8]>,
    /// The field `Origin`.
    pub origin: Option<&'a [u8]>,
    /// The field `Sec-Fetch-Site`.
    pub sec_fetch_site: Option<&'a [u8]>,
    /// The field `If-Match`.
    pub if_match: Option<&'a [u8]>,
    /// The field `If-None-Match`.
    pub if_none_match: Option<&'a [u8]>,
    /// The field `Idempotency-Key`.
    pub idempotency_key: Option<&'a [u8]>,
    /// The field `Request-Timeout`: how long the caller waits.
    pub request_timeout: Option<&'a [u8]>,
    /// All fields, for whoever looks at others.
    pub received: Received<'a>,
    /// What is wrong, if a field of these that may stand once stands there again: which of them would count?
    pub repeated: Option<&'static str>,
}

impl Head<'_> {
    /// True if a browser sent it on behalf of a page: there is an `Origin` or a `Sec-Fetch-Site`.
    pub const fn is_from_page(&self) -> bool {
        self.origin.is_some() || self.sec_fetch_site.is_some()
    }
}

/// Why a message cannot be read. Its connection ends with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HttpError {
    /// Not HTTP, or HTTP that could be understood in two ways.
    Malformed(&'static str),
    /// A version other than 1.0 and 1.1.
    Version,
    /// A request line without end.
    TargetTooLong,
    /// Too many bytes or fields in the head.
    HeadTooLarge,
    /// An expectation other than `100-continue`.
    Expectation,
    /// A body longer than this call may have.
    BodyTooLarge,
    /// The body did not come in time.
    TooSlow,
    /// There is no memory for its body at the moment.
    NoRoom,
    /// Answering it panicked: a bug of ours.
    Panicked,
}

/// Digits, without zeros in front, which some readers take for octal.
pub fn is_length(value: &[u8]) -> bool {
    match value {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// The default port of an absolute target's scheme, and what follows the scheme.
pub fn absolute(target: &str) -> Option<(u16, &str)> {
    let of = |scheme, port| target.strip_prefix(scheme).map(|rest| (port, rest));
    of("http://", 80).or_else(|| of("https://", 443))
}

/// Path and query of a target; `None` if it has no path, as that of CONNECT.
pub fn split_target(target: &str) -> Option<(&str, Option<&str>)> {
    let target = match absolute(target) {
        Some((_, rest)) => rest.find(['/', '?']).and_then(|at| rest.get(at..)).unwrap_or("/"),
        None => Some(target).filter(|target| target.starts_with('/') || *target == "*")?,
    };
    Some(match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    })
}
