//! The head of a forwarded request, rebuilt from what was understood of the caller's: fields of the connection are left
//! out, and fields that tell of the caller are written by the gateway.

use http::header::{self, Entry};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::spec::{ForwardedStyle, HeaderEdits, TraceStyle};
use crate::traceparent;

/// Fields that belong to one connection (RFC 9110, 7.6.1), whatever `Connection` names.
pub(crate) const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("http2-settings"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// Others of the family. They are removed: a server that reads them would believe the caller.
const X_FORWARDED_OTHERS: [HeaderName; 4] = [
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-forwarded-prefix"),
    HeaderName::from_static("x-forwarded-server"),
    HeaderName::from_static("x-real-ip"),
];

/// Fields by which some servers take another method or path than the one that was decided about; of `Proxy`, CGI makes
/// the variable by which programs choose their own proxy.
pub(crate) const OVERRIDES: [HeaderName; 6] = [
    HeaderName::from_static("proxy"),
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-method-override"),
    HeaderName::from_static("x-original-url"),
    HeaderName::from_static("x-rewrite-url"),
];

/// What a route makes of the head of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadStyle<'a> {
    /// Which fields tell of the caller.
    pub(crate) forwarded: ForwardedStyle,
    /// What becomes of `traceparent`.
    pub(crate) trace: TraceStyle,
    /// Fields that are set or removed.
    pub(crate) edits: &'a HeaderEdits,
}

/// Makes the caller's header the one that the server gets.
pub(crate) fn rebuild_head(headers: &mut HeaderMap, style: &HeadStyle<'_>, forwarded: &ForwardedFor<'_>) {
    remove_connection_fields(headers);
    remove_overrides(headers);
    headers.remove(header::EXPECT); // the gateway has answered it
    forwarded.write(style.forwarded, headers);
    traceparent::write(style.trace, headers);
    style.edits.apply(headers);
    remove_other_spellings(headers);
}

/// Removes the fields that name another request.
fn remove_overrides(headers: &mut HeaderMap) {
    for name in &OVERRIDES {
        headers.remove(name);
    }
}

/// Removes fields that some servers cannot tell from one of the gateway, or from another one that is there: for CGI, WSGI
/// and PHP an underscore is a hyphen.
fn remove_other_spellings(headers: &mut HeaderMap) {
    let is_other =
        |name: &&HeaderName| name.as_str().contains('_') && is_protected(&name.as_str().replace('_', "-"), headers);
    let others: Vec<HeaderName> = headers.keys().filter(is_other).cloned().collect();
    for name in others {
        headers.remove(name);
    }
}

/// True for fields that are not the caller's to write, and for those that this request has.
fn is_protected(name: &str, headers: &HeaderMap) -> bool {
    let families =
        [&HOP_BY_HOP[..], &OVERRIDES, &X_FORWARDED_OTHERS, &[X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO]];
    headers.contains_key(name)
        || name == "content-length"
        || families.iter().any(|family| family.iter().any(|own| own == name))
}

/// Removes the fields of the connection, and those that `Connection` names. `TE: trailers` stays: it says that the caller
/// takes trailers, which gRPC needs.
pub(crate) fn remove_connection_fields(headers: &mut HeaderMap) {
    let takes_trailers = tokens(headers, &header::TE).any(|token| token.eq_ignore_ascii_case("trailers"));
    let named: Vec<HeaderName> = tokens(headers, &header::CONNECTION).filter_map(|name| name.parse().ok()).collect();
    // What describes the body is end to end: a caller must not have it left out behind the gateway that read it.
    let is_own = |name: &&HeaderName| **name != header::HOST && !name.as_str().starts_with("content-");
    for name in named.iter().filter(is_own).chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    if takes_trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
}

/// The tokens of a list field.
pub(crate) fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> + use<'a> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|token| !token.is_empty())
}

/// What a server is told of the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForwardedFor<'a> {
    /// The other end of the caller's connection.
    pub(crate) peer: Option<std::net::IpAddr>,
    /// Whether what the peer says of earlier hops is kept.
    pub(crate) trusts_peer: bool,
    /// The `Host` of the caller.
    pub(crate) host: Option<&'a HeaderValue>,
    /// Whether the caller's connection is encrypted.
    pub(crate) is_tls: bool,
}

impl ForwardedFor<'_> {
    /// Writes the fields of a style; those of the other are removed.
    fn write(&self, style: ForwardedStyle, headers: &mut HeaderMap) {
        let is_x = matches!(style, ForwardedStyle::XForwarded | ForwardedStyle::Both);
        let is_forwarded = matches!(style, ForwardedStyle::Forwarded | ForwardedStyle::Both);
        for name in &X_FORWARDED_OTHERS {
            headers.remove(name);
        }
        if !self.trusts_peer || !is_x {
            for name in [&X_FORWARDED_FOR, &X_FORWARDED_HOST, &X_FORWARDED_PROTO] {
                headers.remove(name);
            }
        }
        if !self.trusts_peer || !is_forwarded {
            headers.remove(header::FORWARDED);
        }
        if is_x {
            self.write_x_forwarded(headers);
        }
        if is_forwarded {
            self.write_forwarded(headers);
        }
    }

    fn write_x_forwarded(&self, headers: &mut HeaderMap) {
        if let Some(peer) = self.peer {
            append_to_list(headers, X_FORWARDED_FOR, &peer.to_string());
        }
        if let (Some(host), Entry::Vacant(place)) = (self.host, headers.entry(X_FORWARDED_HOST)) {
            place.insert(host.clone());
        }
        if let Entry::Vacant(place) = headers.entry(X_FORWARDED_PROTO) {
            place.insert(HeaderValue::from_static(self.scheme()));
        }
    }

    /// RFC 7239.
    fn write_forwarded(&self, headers: &mut HeaderMap) {
        let address = match self.peer {
            Some(std::net::IpAddr::V6(address)) => format!("\"[{address}]\""),
            Some(address) => address.to_string(),
            None => "unknown".to_owned(),
        };
        let mut element = format!("for={address};proto={}", self.scheme());
        // The host was checked: it has no quote and no backslash.
        if let Some(host) = self.host.and_then(|host| host.to_str().ok()) {
            element += &format!(";host=\"{host}\"");
        }
        append_to_list(headers, header::FORWARDED, &element);
    }

    const fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }
}

/// Appends an element to a list field, which becomes one line.
fn append_to_list(headers: &mut HeaderMap, name: HeaderName, element: &str) {
    let mut list: Vec<u8> = Vec::new();
    for value in headers.get_all(&name) {
        list.extend_from_slice(value.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(element.as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&list) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let fields = fields.iter();
        fields.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).fold(
            HeaderMap::new(),
            |mut map, (name, value)| {
                map.append(name, value);
                map
            },
        )
    }

    fn shown(headers: &HeaderMap) -> Vec<String> {
        let mut lines: Vec<String> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        lines.sort();
        lines
    }

    #[test]
    fn fields_of_the_connection_are_left_out() {
        let mut headers = map(&[
            ("connection", "close, X-Hop"),
            ("connection", "upgrade, host"),
            ("x-hop", "1"),
            ("host", "a"),
            ("te", "trailers, deflate"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "Basic x"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("x-stays", "1"),
        ]);
        remove_connection_fields(&mut headers);
        assert_eq!(shown(&headers), ["host: a", "te: trailers", "x-stays: 1"]);
    }

    fn forwarded(style: ForwardedStyle, trusts_peer: bool, sent: &[(&'static str, &'static str)]) -> Vec<String> {
        let mut headers = map(sent);
        let host = HeaderValue::from_static("api.example.com");
        let peer = Some("2001:db8::1".parse().unwrap());
        ForwardedFor { peer, trusts_peer, host: Some(&host), is_tls: true }.write(style, &mut headers);
        shown(&headers)
    }

    const SENT: [(&str, &str); 6] = [
        ("x-forwarded-for", "203.0.113.7"),
        ("x-forwarded-for", "10.0.0.1"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "evil"),
        ("forwarded", "for=1.2.3.4"),
        ("x-real-ip", "1.2.3.4"),
    ];

    #[test]
    fn what_an_untrusted_peer_says_of_earlier_hops_is_dropped() {
        let own = ["x-forwarded-for: 2001:db8::1", "x-forwarded-host: api.example.com", "x-forwarded-proto: https"];
        assert_eq!(forwarded(ForwardedStyle::XForwarded, false, &SENT), own);
        assert_eq!(
            forwarded(ForwardedStyle::Forwarded, false, &SENT),
            ["forwarded: for=\"[2001:db8::1]\";proto=https;host=\"api.example.com\""]
        );
        assert!(forwarded(ForwardedStyle::Off, false, &SENT).is_empty());
        assert_eq!(forwarded(ForwardedStyle::Both, false, &SENT).len(), 4);
    }

    #[test]
    fn fields_that_name_another_request_are_removed_in_every_spelling() {
        let mut headers = map(&[
            ("x-http-method-override", "DELETE"),
            ("x_http_method_override", "DELETE"),
            ("x-original-url", "/admin"),
            ("x_forwarded_for", "6.6.6.6"),
            ("x-real_ip", "6.6.6.6"),
            ("content_length", "5"),
            ("x_team", "theirs"),
            ("x_own", "1"),
        ]);
        let set = vec![
            (HeaderName::from_static("x-team"), HeaderValue::from_static("ours")),
            (HeaderName::from_static("x-rewrite-url"), HeaderValue::from_static("/ours")),
        ];
        let forwarded = ForwardedFor { peer: None, trusts_peer: true, host: None, is_tls: false };
        let edits = HeaderEdits { set, ..HeaderEdits::default() };
        let style = HeadStyle { forwarded: ForwardedStyle::Off, trace: TraceStyle::Pass, edits: &edits };
        rebuild_head(&mut headers, &style, &forwarded);
        let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["x-rewrite-url", "x-team", "x_own"], "a route may set what a caller may not");
    }

    #[test]
    fn a_trusted_peer_is_added_to_the_list() {
        let of_proxy = [
            "x-forwarded-for: 203.0.113.7, 10.0.0.1, 2001:db8::1",
            "x-forwarded-host: evil",
            "x-forwarded-proto: http",
        ];
        assert_eq!(forwarded(ForwardedStyle::XForwarded, true, &SENT), of_proxy);
        assert!(forwarded(ForwardedStyle::Off, true, &SENT).is_empty());
    }
}
