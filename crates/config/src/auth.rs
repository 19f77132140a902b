//! Settings of forward-auth.

use std::fmt;
use std::str::FromStr;

use tollgate_core::Attribute;
use tollgate_rules::address::Cidr;
use tollgate_rules::key::is_attribute;
use tollgate_rules::problem::{ParseError, quote};

use crate::choice::AuthSource;

/// Settings of `/v1/auth`, and the proxies that are trusted there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSettings {
    /// Where a check carries the original request.
    pub source: AuthSource,
    /// The status of a denial.
    pub deny_status: u16,
    /// The status of a denial because the store is away.
    pub closed_status: u16,
    /// Attributes that proxies send in header fields.
    pub attributes: Vec<FromHeader>,
    /// The header field with the cost, if any: 1 without it.
    pub cost_header: Option<String>,
    /// The namespace whose rules apply.
    pub namespace: Option<String>,
    /// Trusted proxies.
    pub trusted_proxies: Vec<Cidr>,
    /// How many proxies in front of this server are trusted to add to X-Forwarded-For.
    pub trusted_hops: usize,
}

impl Default for AuthSettings {
    fn default() -> Self {
        let loopback = |bits, prefix_len| Cidr { addr: bits, prefix_len };
        AuthSettings {
            source: AuthSource::Off,
            deny_status: 429,
            closed_status: 503,
            attributes: vec![FromHeader { attribute: "api_key".to_owned(), header: "x-api-key".to_owned() }],
            cost_header: None,
            namespace: None,
            trusted_proxies: vec![loopback(0xffff_7f00_0000, 104), loopback(1, 128)],
            trusted_hops: 1,
        }
    }
}

impl AuthSettings {
    /// Conflicting settings: the one to report, and why.
    pub(super) fn conflicts(&self, has_tokens: bool) -> Vec<(&'static str, ParseError)> {
        let mut found = Vec::new();
        if has_tokens && self.source != AuthSource::Off && self.attributes.iter().any(|from| from.header == TOKENS) {
            let help = "let the proxy send the key in a header of its own, or leave token_file out";
            let message = "an attribute comes from authorization, where the token of the proxy stands";
            found.push(("auth_attributes", ParseError::new(message, help)));
        }
        if self.cost_header.as_ref().is_some_and(|cost| self.attributes.iter().any(|from| from.header == *cost)) {
            found.push((
                "auth_cost_header",
                ParseError::new("an attribute comes from the same header", "name another header"),
            ));
        }
        found
    }
}

/// The header field with the token.
const TOKENS: &str = "authorization";

/// An attribute that a proxy sends in a header field: `api_key=x-api-key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromHeader {
    /// The attribute.
    pub attribute: String,
    /// The header field, in lower case.
    pub header: String,
}

impl FromStr for FromHeader {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<FromHeader, ParseError> {
        let refuse = |help: &str| ParseError::new(format!("{} is not an attribute from a header", quote(text)), help);
        let (name, field) = text.split_once('=').ok_or_else(|| refuse("write ATTRIBUTE=HEADER: api_key=x-api-key"))?;
        let computed = [Attribute::Ip, Attribute::Endpoint].map(Attribute::name);
        match name {
            name if computed.contains(&name) || ["method", "path", "namespace"].contains(&name) => {
                Err(refuse("ip, endpoint, method, path and namespace come from the request and the settings"))
            }
            name if !is_attribute(name) => {
                Err(refuse("an attribute is a lower-case letter, then up to 63 of a-z, 0-9, _, ., -"))
            }
            name => Ok(FromHeader { attribute: name.to_owned(), header: header(field)? }),
        }
    }
}

impl fmt::Display for FromHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.attribute, self.header)
    }
}

/// The name of a header field, in lower case.
pub(super) fn header(text: &str) -> Result<String, ParseError> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match (1..=64).contains(&text.len()) && text.bytes().all(is_name) {
        true => Ok(text.to_ascii_lowercase()),
        false => {
            let help = "a header has a name of 1 to 64 letters, digits, - and _: x-api-key";
            Err(ParseError::new(format!("{} is not the name of a header", quote(text)), help))
        }
    }
}

/// Attributes from headers, none named twice.
pub(super) fn attributes<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<FromHeader>, ParseError> {
    let mut found: Vec<FromHeader> = Vec::new();
    for text in texts {
        let from: FromHeader = text.parse()?;
        if found.iter().any(|other| other.attribute == from.attribute) {
            return Err(ParseError::new(format!("{} is named twice", quote(&from.attribute)), "name each one once"));
        }
        found.push(from);
    }
    match found.len() > ATTRIBUTES_MAX {
        true => Err(ParseError::new("too many attributes", format!("at most {ATTRIBUTES_MAX} come from headers"))),
        false => Ok(found),
    }
}

/// Most attributes from headers: as many as a check may have by itself.
const ATTRIBUTES_MAX: usize = 32;
