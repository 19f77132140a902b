//! Where a request carries a secret, and how it is found there: once, or not at all.

use std::borrow::Cow;

use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::Evidence;

/// Where a request carries a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// In a header field; of `authorization`, the bearer token.
    Header(HeaderName),
    /// In a parameter of the query.
    Query(String),
    /// In a cookie.
    Cookie(String),
}

/// What a request shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Presented<'a> {
    /// Nothing.
    Nothing,
    /// One secret: visible ASCII characters.
    Secret(Cow<'a, str>),
    /// Several, or none that could be one. A server behind the gateway might read another one than the gateway.
    Malformed,
}

/// The scheme of a token in Authorization.
pub(crate) const BEARER: &str = "Bearer";

impl CredentialSource {
    pub(crate) fn find<'a>(&self, evidence: &Evidence<'a>) -> Presented<'a> {
        match self {
            CredentialSource::Header(name) if name == AUTHORIZATION => authorization(evidence.headers, BEARER),
            CredentialSource::Header(name) => header(evidence.headers, name),
            CredentialSource::Query(name) => query(evidence.query.unwrap_or_default(), name),
            CredentialSource::Cookie(name) => cookie(evidence.headers, name),
        }
    }
}

/// The credential of an Authorization field of this scheme.
pub(crate) fn authorization<'a>(headers: &'a HeaderMap, scheme: &str) -> Presented<'a> {
    match header(headers, &AUTHORIZATION) {
        Presented::Secret(Cow::Borrowed(value)) => match value.split_once(' ') {
            Some((found, secret)) if found.eq_ignore_ascii_case(scheme) => one(Cow::Borrowed(secret.trim_matches(' '))),
            _ => Presented::Nothing, // another scheme, which another proof may read
        },
        other => other,
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Presented<'a> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Presented::Nothing,
        (Some(value), None) => match value.to_str() {
            // Authorization has a space behind its scheme.
            Ok(text) if name == AUTHORIZATION => Presented::Secret(Cow::Borrowed(text.trim_ascii())),
            Ok(text) => one(Cow::Borrowed(text.trim_ascii())),
            Err(_) => Presented::Malformed,
        },
        (Some(_), Some(_)) => Presented::Malformed,
    }
}

fn query<'a>(query: &'a str, name: &str) -> Presented<'a> {
    let values = form_urlencoded::parse(query.as_bytes()).filter(|(found, _)| found == name);
    only(values.map(|(_, value)| value))
}

/// Read as bytes: what another cookie holds must not hide the one that is looked for.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Presented<'a> {
    let fields = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes);
    let pairs = fields.flat_map(|field| field.split(|byte| *byte == b';')).filter_map(|pair| {
        let (found, value) = pair.split_at_checked(pair.iter().position(|byte| *byte == b'=')?)?;
        Some((found.trim_ascii(), value.get(1..)?.trim_ascii()))
    });
    let mut values = pairs.filter(|(found, _)| *found == name.as_bytes()).map(|(_, value)| {
        let inner = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
        inner.unwrap_or(value)
    });
    match (values.next().map(std::str::from_utf8), values.next()) {
        (None, _) => Presented::Nothing,
        (Some(Ok(value)), None) => one(Cow::Borrowed(value)),
        (Some(Err(_)), None) | (Some(_), Some(_)) => Presented::Malformed,
    }
}

fn only<'a>(mut values: impl Iterator<Item = Cow<'a, str>>) -> Presented<'a> {
    match (values.next(), values.next()) {
        (None, _) => Presented::Nothing,
        (Some(value), None) => one(value),
        (Some(_), Some(_)) => Presented::Malformed,
    }
}

fn one(value: Cow<'_, str>) -> Presented<'_> {
    match value.bytes().all(|byte| byte.is_ascii_graphic()) {
        _ if value.is_empty() => Presented::Nothing,
        true => Presented::Secret(value),
        false => Presented::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields<'a> = &'a [(&'a str, &'a [u8])];

    fn find(source: &CredentialSource, fields: Fields<'_>, query: &str) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        let evidence =
            Evidence { namespace: "default", headers: &headers, query: Some(query), peer: None, certificate: None };
        match source.find(&evidence) {
            Presented::Nothing => "nothing".to_owned(),
            Presented::Malformed => "malformed".to_owned(),
            Presented::Secret(secret) => format!("={secret}"),
        }
    }

    #[test]
    fn i11_a_header_holds_one_visible_secret_or_none() {
        let source = CredentialSource::Header(HeaderName::from_static("x-api-key"));
        let cases: [(Fields<'_>, &str); 7] = [
            (&[], "nothing"),
            (&[("x-api-key", b"abc")], "=abc"),
            (&[("x-api-key", b"  abc \t")], "=abc"),
            (&[("x-api-key", b"")], "nothing"),
            (&[("x-api-key", b"a b")], "malformed"),
            (&[("x-api-key", b"\xef\xbb\xbfabc")], "malformed"),
            (&[("x-api-key", b"abc"), ("x-api-key", b"abc")], "malformed"),
        ];
        for (fields, expected) in cases {
            assert_eq!(find(&source, fields, ""), expected, "{fields:?}");
        }
    }

    #[test]
    fn authorization_holds_a_bearer_token() {
        let source = CredentialSource::Header(AUTHORIZATION);
        let cases: [(&[u8], &str); 6] = [
            (b"Bearer abc", "=abc"),
            (b"bearer   abc  ", "=abc"),
            (b"Basic abc", "nothing"),
            (b"Bearer", "nothing"),
            (b"Bearer a b", "malformed"),
            (b"Bearer a\xff", "malformed"),
        ];
        for (value, expected) in cases {
            assert_eq!(find(&source, &[("authorization", value)], ""), expected, "{}", value.escape_ascii());
        }
        assert_eq!(find(&source, &[("authorization", b"Bearer a"), ("authorization", b"Bearer b")], ""), "malformed");
    }

    #[test]
    fn a_query_or_cookie_holds_it_once() {
        let source = CredentialSource::Query("key".to_owned());
        for (query, expected) in [
            ("key=abc&a=b", "=abc"),
            ("%6bey=a%62c", "=abc"),
            ("key=a&key=b", "malformed"),
            ("key=a%00", "malformed"),
            ("key=", "nothing"),
            ("", "nothing"),
        ] {
            assert_eq!(find(&source, &[], query), expected, "{query}");
        }
        let source = CredentialSource::Cookie("key".to_owned());
        let cases: [(Fields<'_>, &str); 12] = [
            // Bytes beyond ASCII, in other cookies and in this one.
            (&[("cookie", b"key=abc; a=\xff")], "=abc"),
            (&[("cookie", "name=Zo\u{eb}; key=abc".as_bytes())], "=abc"),
            (&[("cookie", b"\xff; key=abc; =")], "=abc"),
            (&[("cookie", b"key=\xff")], "malformed"),
            (&[("cookie", b"key=\xff"), ("cookie", b"key=abc")], "malformed"),
            (&[("cookie", b"key=abc"), ("cookie", b"a=\xff; key=\xff")], "malformed"),
            (&[("cookie", b"key=abc; key=")], "malformed"),
            (&[("cookie", "key=\u{e4}".as_bytes())], "malformed"),
            (&[("cookie", b"a=b; key=abc")], "=abc"),
            (&[("cookie", b"a=b"), ("cookie", b"key=\"abc\"")], "=abc"),
            (&[("cookie", b"key=a; key=b")], "malformed"),
            (&[("cookie", b"keys=a")], "nothing"),
        ];
        for (fields, expected) in cases {
            assert_eq!(find(&source, fields, ""), expected, "{fields:?}");
        }
    }
}
