//! Converts a proxy's check to a request: endpoint, client, attributes and cost.
//!
//! The original request is read only from the configured source: a client behind a proxy that sets one pair of header
//! fields could supply the other. The query is not read: some proxies pass on the client's.

use smallvec::SmallVec;
use tollgate_core::{Attribute, Request};
use tollgate_rules::path::is_method;

use super::refuse::AuthError;
use tollgate_config::{AuthSettings, AuthSource};
use tollgate_identity::{ForwardedHeader, ProxyTrust};
use tollgate_net::Peer;
use tollgate_service::check_request::COST_MAX;
use tollgate_service::render::Media;
use tollgate_web::head::split_target;
use tollgate_web::{Head, HeaderLookup};

/// The path prefix of checks.
pub const PREFIX: &str = "/v1/auth";

/// The path below the prefix; `None` if the path is not a check.
pub fn below_prefix(path: &str) -> Option<&str> {
    match path.strip_prefix(PREFIX)? {
        "" => Some("/"),
        rest => Some(rest).filter(|rest| rest.starts_with('/')),
    }
}

/// Converts checks to requests, as configured.
#[derive(Clone, Debug)]
pub struct AuthReader {
    source: AuthSource,
    trust: ProxyTrust,
    namespace: Option<String>,
    cost: Option<String>,
    /// Each attribute with its header field.
    attributes: Vec<(AttributeName, String)>,
}

#[derive(Clone, Debug)]
enum AttributeName {
    Known(Attribute),
    Custom(String),
}

/// A parsed check, kept while its body is drained.
#[derive(Debug, PartialEq, Eq)]
pub struct AuthCheck {
    endpoint: String,
    /// The client's address as a client key, the default when no attribute supplies one.
    client: String,
    /// Values of the reader's attributes, in their order.
    values: SmallVec<[Option<String>; 2]>,
    cost: u64,
    /// Media type of an error response.
    pub media: Media,
    /// True if the peer is a trusted proxy.
    pub is_trusted: bool,
}

impl AuthReader {
    /// A reader with these settings.
    pub fn new(settings: &AuthSettings) -> AuthReader {
        let attribute_name = |name: &str| match Attribute::from_name(name) {
            Some(attribute) => AttributeName::Known(attribute),
            None => AttributeName::Custom(name.to_owned()),
        };
        AuthReader {
            source: settings.source,
            trust: ProxyTrust {
                proxies: settings.trusted_proxies.clone(),
                hops: settings.trusted_hops,
                header: ForwardedHeader::XForwardedFor,
            },
            namespace: settings.namespace.clone(),
            cost: settings.cost_header.clone(),
            attributes: settings
                .attributes
                .iter()
                .map(|from| (attribute_name(&from.attribute), from.header.clone()))
                .collect(),
        }
    }

    /// The namespace whose rules decide.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(Request::DEFAULT_NAMESPACE)
    }

    /// Parses a check. `below` is its path below the prefix.
    pub fn check(&self, peer: &Peer, head: &Head<'_>, below: &str) -> Result<AuthCheck, AuthError> {
        let is_trusted = self.trust.is_trusted(peer.whole);
        // Without an address and without another key nothing would be charged: refuse instead of allowing for free.
        let client =
            self.trust.client(peer.whole, &head.headers.all(self.trust.header.name())).ok_or(AuthError::NoClient)?;
        // From an untrusted peer only the address of the connection counts.
        let (values, cost) = match is_trusted {
            true => (self.attribute_values(head)?, self.cost(head)?),
            false => (SmallVec::from_elem(None, self.attributes.len()), 1),
        };
        Ok(AuthCheck {
            endpoint: self.endpoint(head, below)?,
            client: format!("ip:{client}"),
            values,
            cost,
            media: head.accept.map_or(Media::Problem, Media::accepted),
            is_trusted,
        })
    }

    fn endpoint(&self, head: &Head<'_>, below: &str) -> Result<String, AuthError> {
        match self.source {
            AuthSource::Path | AuthSource::Off => Ok(endpoint(head.method, below)),
            AuthSource::Forwarded => original_endpoint(head, "x-forwarded-method", &["x-forwarded-uri"]),
            AuthSource::Original => original_endpoint(head, "x-original-method", &["x-original-uri", "x-original-url"]),
        }
    }

    fn attribute_values(&self, head: &Head<'_>) -> Result<SmallVec<[Option<String>; 2]>, AuthError> {
        self.attributes.iter().map(|(_, header)| attribute_value(head, header)).collect()
    }

    fn cost(&self, head: &Head<'_>) -> Result<u64, AuthError> {
        let Some(header) = &self.cost else { return Ok(1) };
        match head.headers.find(header) {
            HeaderLookup::Absent | HeaderLookup::Once(b"") => Ok(1),
            HeaderLookup::Repeated => Err(AuthError::Repeated(header.clone())),
            HeaderLookup::Once(value) => {
                let digits = value.len() <= 16 && value.iter().all(u8::is_ascii_digit);
                let number = str::from_utf8(value).ok().filter(|_| digits).and_then(|text| text.parse().ok());
                number.filter(|cost| *cost <= COST_MAX).ok_or_else(|| AuthError::BadCost(header.clone()))
            }
        }
    }

    /// The custom attributes, for [`request`](AuthReader::request).
    pub fn custom<'a>(&'a self, check: &'a AuthCheck) -> SmallVec<[(&'a str, &'a str); 2]> {
        let custom = self.attributes.iter().zip(&check.values).filter_map(|((name, _), value)| match name {
            AttributeName::Custom(name) => Some((name.as_str(), value.as_deref()?)),
            AttributeName::Known(_) => None,
        });
        custom.collect()
    }

    /// The request for the engine.
    pub fn request<'a>(&'a self, check: &'a AuthCheck, custom: &'a [(&'a str, &'a str)]) -> Request<'a> {
        let mut request = Request::new().cost(check.cost).with_custom(custom);
        request.set(Attribute::Endpoint, &check.endpoint);
        request.set(Attribute::ClientKey, &check.client);
        request.set(Attribute::Ip, check.client.strip_prefix("ip:").unwrap_or(&check.client));
        for ((name, _), value) in self.attributes.iter().zip(&check.values) {
            if let (AttributeName::Known(attribute), Some(value)) = (name, value) {
                request.set(*attribute, value);
            }
        }
        match &self.namespace {
            Some(namespace) => request.in_namespace(namespace),
            None => request,
        }
    }
}

/// The endpoint from header fields: the method and exactly one of the targets, none repeated.
fn original_endpoint(head: &Head<'_>, method: &'static str, targets: &[&'static str]) -> Result<String, AuthError> {
    let once = |name: &'static str| match head.headers.find(name) {
        HeaderLookup::Absent | HeaderLookup::Once(b"") => Ok(None),
        HeaderLookup::Once(value) => Ok(Some(str::from_utf8(value).map_err(|_| AuthError::NotText(name.to_owned()))?)),
        HeaderLookup::Repeated => Err(AuthError::Repeated(name.to_owned())),
    };
    let mut target = None;
    for name in targets {
        if let Some(value) = once(name)?
            && let Some((other, _)) = target.replace((*name, value))
        {
            return Err(AuthError::Both(other, name));
        }
    }
    let first = targets.first().copied().unwrap_or_default();
    let (name, target) = target.ok_or(AuthError::NoOriginal(first))?;
    let (path, _) = split_target(target).ok_or(AuthError::NotATarget(name))?;
    let path = if path.is_empty() { "/" } else { path }; // https://shop.example?query
    Ok(endpoint(once(method)?.ok_or(AuthError::NoOriginal(method))?, path))
}

/// Omits a method that rules cannot name: such a request then matches the rules of every method. HEAD counts as GET, or
/// it would bypass a rule for GET.
fn endpoint(method: &str, path: &str) -> String {
    let method = if method == "HEAD" { "GET" } else { method };
    match is_method(method) {
        true => format!("{method} {path}"),
        false => path.to_owned(),
    }
}

/// The value of an attribute. Other bytes than visible ASCII and spaces are refused: two spellings that a lenient
/// reader takes for the same key must not get separate buckets.
fn attribute_value(head: &Head<'_>, header: &str) -> Result<Option<String>, AuthError> {
    let sent = match head.headers.find(header) {
        HeaderLookup::Absent => return Ok(None),
        HeaderLookup::Repeated => return Err(AuthError::Repeated(header.to_owned())),
        HeaderLookup::Once(sent) => sent,
    };
    let sent = if header == "authorization" { bearer(sent) } else { sent };
    if sent.is_empty() {
        return Ok(None);
    }
    let text = str::from_utf8(sent).ok().filter(|text| text.bytes().all(|byte| matches!(byte, b' '..=b'~')));
    text.map(|text| Some(text.to_owned())).ok_or_else(|| AuthError::NotText(header.to_owned()))
}

/// The token of `Authorization: Bearer TOKEN`; empty for other schemes.
fn bearer(sent: &[u8]) -> &[u8] {
    match sent.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => token.trim_ascii(),
        _ => b"",
    }
}
