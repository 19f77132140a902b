//! The request head as handlers see it, and the errors of messages that cannot be read.

use std::fmt;

use http::request::Parts;
use http::{HeaderValue, Version, header};

use crate::received_headers::ReceivedHeaders;

/// The error for a `Host` that is not a host with an optional port.
pub const HOST_BAD: &str = "Host is not a host with an optional port";
/// The error for a missing or repeated `Host`.
pub const HOSTS_MANY: &str = "there must be exactly one Host";
/// The error for a target that names another host than `Host`.
pub const HOSTS_DIFFER: &str = "the target names another host than Host does";
/// The error for a `Content-Length` that is not a number.
pub const LENGTH_BAD: &str = "Content-Length is not a number";
/// The error for the target `*` with another method than OPTIONS.
pub const ASTERISK: &str = "the target * is only for OPTIONS";

/// The fields that the APIs read. Other fields can be looked up by name in `headers`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head<'a> {
    /// The method as sent.
    pub method: &'a str,
    /// The path, without query, scheme and authority.
    pub path: &'a str,
    /// The query, without the question mark.
    pub query: Option<&'a str>,
    /// The field `Authorization`.
    pub authorization: Option<&'a [u8]>,
    /// The field `Accept`.
    pub accept: Option<&'a [u8]>,
    /// The field `Content-Type`.
    pub content_type: Option<&'a [u8]>,
    /// The field `Content-Encoding`.
    pub content_encoding: Option<&'a [u8]>,
    /// The field `Host`; the authority for HTTP/2 and for an absolute target without `Host`.
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
    /// All fields, for lookups by name.
    pub headers: ReceivedHeaders<'a>,
    /// The error if one of these fields is repeated and may be sent once: readers disagree about which one counts.
    pub repeated: Option<&'static str>,
}

/// The fields that may be sent once, and the error if one of them is repeated.
const SENT_ONCE: [(&str, &str); 9] = [
    ("authorization", "there is more than one Authorization"),
    ("content-encoding", "there is more than one Content-Encoding"),
    ("content-type", "there is more than one Content-Type"),
    ("idempotency-key", "there is more than one Idempotency-Key"),
    ("if-match", "there is more than one If-Match"),
    ("if-none-match", "there is more than one If-None-Match"),
    ("origin", "there is more than one Origin"),
    ("request-timeout", "there is more than one Request-Timeout"),
    ("sec-fetch-site", "there is more than one Sec-Fetch-Site"),
];

impl<'a> Head<'a> {
    /// The head of a request that hyper has read.
    pub fn of(parts: &'a Parts) -> Head<'a> {
        let field = |name: &str| parts.headers.get(name).map(HeaderValue::as_bytes);
        let (host, authority) =
            (field(header::HOST.as_str()), parts.uri.authority().map(|host| host.as_str().as_bytes()));
        let has_repeated = parts.headers.len() > parts.headers.keys_len();
        let is_repeated = |name: &str| parts.headers.get_all(name).iter().nth(1).is_some();
        let repeated = SENT_ONCE.iter().find(|(name, _)| has_repeated && is_repeated(name));
        Head {
            method: parts.method.as_str(),
            path: parts.uri.path(),
            query: parts.uri.query(),
            authorization: field("authorization"),
            accept: field("accept"),
            content_type: field("content-type"),
            content_encoding: field("content-encoding"),
            host: if parts.version == Version::HTTP_2 { authority.or(host) } else { host.or(authority) },
            origin: field("origin"),
            sec_fetch_site: field("sec-fetch-site"),
            if_match: field("if-match"),
            if_none_match: field("if-none-match"),
            idempotency_key: field("idempotency-key"),
            request_timeout: field("request-timeout"),
            headers: ReceivedHeaders::Map(&parts.headers),
            repeated: repeated.map(|(_, error)| *error),
        }
    }

    /// True if a browser sent the request for a page: it has an `Origin` or a `Sec-Fetch-Site`.
    pub const fn is_from_page(&self) -> bool {
        self.origin.is_some() || self.sec_fetch_site.is_some()
    }
}

/// Why a message cannot be read. The connection closes after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HttpError {
    /// Not HTTP, or HTTP that two readers could understand differently.
    Malformed(&'static str),
    /// A version other than 1.0 and 1.1.
    Version,
    /// The request line exceeds the limit.
    TargetTooLong,
    /// Too many bytes or fields in the head.
    HeadTooLarge,
    /// An expectation other than `100-continue`.
    Expectation,
    /// The body exceeds the limit of this call.
    BodyTooLarge,
    /// The body did not arrive in time.
    TooSlow,
    /// The byte budget has no room for the body.
    NoRoom,
    /// The handler panicked.
    Panicked,
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HttpError::Malformed(detail) => detail,
            HttpError::Version => "the HTTP version is not supported",
            HttpError::TargetTooLong => "the target is too long",
            HttpError::HeadTooLarge => "the head is too large",
            HttpError::Expectation => "the expectation cannot be met",
            HttpError::BodyTooLarge => "the body is too large",
            HttpError::TooSlow => "the body did not arrive in time",
            HttpError::NoRoom => "too many bodies are on their way",
            HttpError::Panicked => "the handler panicked",
        })
    }
}

impl std::error::Error for HttpError {}

/// True for decimal digits without leading zeros, which some readers take for octal.
pub fn is_length(value: &[u8]) -> bool {
    match value {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// The default port of an absolute target's scheme, and the target without the scheme.
pub fn absolute(target: &str) -> Option<(u16, &str)> {
    let of = |scheme, port| target.strip_prefix(scheme).map(|rest| (port, rest));
    of("http://", 80).or_else(|| of("https://", 443))
}

/// Path and query of a target; `None` if it has no path, such as the target of CONNECT.
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
