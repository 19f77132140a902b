//! A check becomes a request: what the client asked the proxy for, who it is, what it costs.
//!
//! The original request comes from one place, the one that was configured: a client behind a proxy that sets one pair of
//! header fields could supply the other. Nothing is read from the query, which behind some proxies is the client's.

use smallvec::SmallVec;
use tollgate_core::{Attribute, Request};
use tollgate_rules::path::is_method;

use super::client::ProxyTrust;
use super::refuse::AuthError;
use tollgate_config::{AuthSettings, AuthSource};
use tollgate_net::Peer;
use tollgate_service::check_request::COST_MAX;
use tollgate_service::render::Media;
use tollgate_web::head::split_target;
use tollgate_web::{Found, Head};

/// Everything below it is a check.
pub const PREFIX: &str = "/v1/auth";

/// The original path of a check whose URL has it, the query left out; `None` for what is no check.
pub fn below_prefix(path: &str) -> Option<&str> {
    match path.strip_prefix(PREFIX)? {
        "" => Some("/"),
        rest => Some(rest).filter(|rest| rest.starts_with('/')),
    }
}

/// How checks are read.
#[derive(Clone, Debug)]
pub struct AuthReader {
    source: AuthSource,
    trust: ProxyTrust,
    namespace: Option<String>,
    cost: Option<String>,
    /// Attributes that have a name of their own, and those that have none; each with its header field.
    attributes: Vec<(AttributeName, String)>,
}

#[derive(Clone, Debug)]
enum AttributeName {
    Known(Attribute),
    Custom(String),
}

/// What a check asks, kept while its body is drained.
#[derive(Debug, PartialEq, Eq)]
pub struct AuthCheck {
    endpoint: String,
    /// The client's address, as a client key: who sends no other key is counted by it.
    client: String,
    /// Values of the attributes, in their order.
    values: SmallVec<[Option<String>; 2]>,
    cost: u64,
    /// How a refusal is to be written.
    pub media: Media,
    /// Whether whoever asks may serve for others.
    pub is_trusted: bool,
}

impl AuthReader {
    /// How these settings read checks.
    pub fn new(settings: &AuthSettings) -> AuthReader {
        let whose = |name: &str| match Attribute::from_name(name) {
            Some(attribute) => AttributeName::Known(attribute),
            None => AttributeName::Custom(name.to_owned()),
        };
        AuthReader {
            source: settings.source,
            trust: ProxyTrust { proxies: settings.trusted_proxies.clone(), hops: settings.trusted_hops },
            namespace: settings.namespace.clone(),
            cost: settings.cost_header.clone(),
            attributes: settings.attributes.iter().map(|from| (whose(&from.attribute), from.header.clone())).collect(),
        }
    }

    /// AttributeName rules are asked.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or(Request::DEFAULT_NAMESPACE)
    }

    /// Reads a check, or says why it cannot be read. `below` is what its path has below the prefix.
    pub fn check(&self, peer: &Peer, head: &Head<'_>, below: &str) -> Result<AuthCheck, AuthError> {
        let is_trusted = self.trust.is_trusted(peer.whole);
        // Without it nobody would be counted where no other key is sent: that is no request, not a free one.
        let client = self.trust.client(peer.whole, &head.received.all("x-forwarded-for")).ok_or(AuthError::NoClient)?;
        // Of somebody who may not serve for others, only the connection is believed.
        let (values, cost) = match is_trusted {
            true => (self.values(head)?, self.cost(head)?),
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
            AuthSource::Forwarded => original(head, "x-forwarded-method", &["x-forwarded-uri"]),
            AuthSource::Original => original(head, "x-original-method", &["x-original-uri", "x-original-url"]),
        }
    }

    fn values(&self, head: &Head<'_>) -> Result<SmallVec<[Option<String>; 2]>, AuthError> {
        self.attributes.iter().map(|(_, header)| value(head, header)).collect()
    }

    fn cost(&self, head: &Head<'_>) -> Result<u64, AuthError> {
        let Some(header) = &self.cost else { return Ok(1) };
        match head.received.find(header) {
            Found::Absent | Found::Once(b"") => Ok(1),
            Found::Repeated => Err(AuthError::Repeated(header.clone())),
            Found::Once(value) => {
                let digits = value.len() <= 16 && value.iter().all(u8::is_ascii_digit);
                let number = str::from_utf8(value).ok().filter(|_| digits).and_then(|text| text.parse().ok());
                number.filter(|cost| *cost <= COST_MAX).ok_or_else(|| AuthError::BadCost(header.clone()))
            }
        }
    }

    /// The attributes without a name of their own, for [`request`](AuthReader::request).
    pub fn custom<'a>(&'a self, check: &'a AuthCheck) -> SmallVec<[(&'a str, &'a str); 2]> {
        let custom = self.attributes.iter().zip(&check.values).filter_map(|((whose, _), value)| match whose {
            AttributeName::Custom(name) => Some((name.as_str(), value.as_deref()?)),
            AttributeName::Known(_) => None,
        });
        custom.collect()
    }

    /// The request as the engine takes it.
    pub fn request<'a>(&'a self, check: &'a AuthCheck, custom: &'a [(&'a str, &'a str)]) -> Request<'a> {
        let mut request = Request::new().cost(check.cost).with_custom(custom);
        request.set(Attribute::Endpoint, &check.endpoint);
        request.set(Attribute::ClientKey, &check.client);
        request.set(Attribute::Ip, check.client.strip_prefix("ip:").unwrap_or(&check.client));
        for ((whose, _), value) in self.attributes.iter().zip(&check.values) {
            if let (AttributeName::Known(attribute), Some(value)) = (whose, value) {
                request.set(*attribute, value);
            }
        }
        match &self.namespace {
            Some(namespace) => request.in_namespace(namespace),
            None => request,
        }
    }
}

/// The original request in header fields: each once, and one of those that name its target.
fn original(head: &Head<'_>, method: &'static str, targets: &[&'static str]) -> Result<String, AuthError> {
    let once = |name: &'static str| match head.received.find(name) {
        Found::Absent | Found::Once(b"") => Ok(None),
        Found::Once(value) => Ok(Some(str::from_utf8(value).map_err(|_| AuthError::NotText(name.to_owned()))?)),
        Found::Repeated => Err(AuthError::Repeated(name.to_owned())),
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

/// A method that rules cannot name is left out: such a request then meets the rules of every method. HEAD is GET without
/// a body: it must be no way around a rule for GET.
fn endpoint(method: &str, path: &str) -> String {
    let method = if method == "HEAD" { "GET" } else { method };
    match is_method(method) {
        true => format!("{method} {path}"),
        false => path.to_owned(),
    }
}

/// The value of an attribute. Visible ASCII, or the request is refused: what a reader less careful would take for another
/// spelling of the same key must not be a bucket of its own.
fn value(head: &Head<'_>, header: &str) -> Result<Option<String>, AuthError> {
    let sent = match head.received.find(header) {
        Found::Absent => return Ok(None),
        Found::Repeated => return Err(AuthError::Repeated(header.to_owned())),
        Found::Once(sent) => sent,
    };
    let sent = if header == "authorization" { bearer(sent) } else { sent };
    if sent.is_empty() {
        return Ok(None);
    }
    let text = str::from_utf8(sent).ok().filter(|text| text.bytes().all(|byte| matches!(byte, b' '..=b'~')));
    text.map(|text| Some(text.to_owned())).ok_or_else(|| AuthError::NotText(header.to_owned()))
}

/// The token of `Authorization: Bearer TOKEN`; nothing of other schemes.
fn bearer(sent: &[u8]) -> &[u8] {
    match sent.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => token.trim_ascii(),
        _ => b"",
    }
}
