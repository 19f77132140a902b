//! Rejects HTTP/2 heads with an ambiguous host or body length. Shared by the HTTP and the gRPC server.

use http::header::{CONTENT_LENGTH, HOST, HeaderMap};
use http::request::Parts;
use http::{Method, Uri};

use crate::authority::Authority;
use crate::head::{ASTERISK, HOST_BAD, HOSTS_DIFFER, HOSTS_MANY, LENGTH_BAD, is_length};

/// An error for a head that two readers could understand differently.
pub fn check(head: &Parts) -> Result<(), &'static str> {
    check_host(&head.uri, &head.headers)?;
    check_length(&head.headers)?;
    match head.uri.path() == "*" && head.method != Method::OPTIONS {
        true => Err(ASTERISK),
        false => Ok(()),
    }
}

/// `:authority`, `host`, or both with the same value. Neither is no error here: gRPC allows it.
fn check_host(uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
    let mut fields = headers.get_all(HOST).iter();
    let field = fields.next();
    if fields.next().is_some() {
        return Err(HOSTS_MANY);
    }
    let authority = uri.authority().map(|sent| parse(sent.as_str().as_bytes())).transpose()?;
    let field = field.map(|sent| parse(sent.as_bytes())).transpose()?;
    let default = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    match authority.zip(field).is_some_and(|(authority, field)| !authority.is_same(field, default)) {
        true => Err(HOSTS_DIFFER),
        false => Ok(()),
    }
}

fn parse(sent: &[u8]) -> Result<Authority<'_>, &'static str> {
    Authority::parse(sent).ok_or(HOST_BAD)
}

fn check_length(headers: &HeaderMap) -> Result<(), &'static str> {
    let mut fields = headers.get_all(CONTENT_LENGTH).iter();
    match (fields.next(), fields.next()) {
        (None, _) => Ok(()),
        (Some(length), None) if is_length(length.as_bytes()) => Ok(()),
        _ => Err(LENGTH_BAD),
    }
}
