//! The head of a forwarded request, rebuilt from what was understood of the caller's: fields of the connection are left
//! out, and fields that tell of the caller are written by the gateway.

use http::header::{self, Entry};
use http::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

use crate::field_class::FieldClass;
use crate::spec::{ForwardedStyle, HeaderEdits, TraceStyle};
use crate::traceparent;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// What a route makes of the head of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadStyle<'a> {
    /// Which fields tell of the caller.
    pub(crate) forwarded: ForwardedStyle,
    /// What becomes of `traceparent`.
    pub(crate) trace: TraceStyle,
    /// Fields that are set or removed.
    pub(crate) edits: &'a HeaderEdits,
    /// Fields in which callers show keys and tokens.
    pub(crate) credentials: &'a [HeaderName],
}

/// Makes the caller's header the one that the server gets.
pub(crate) fn rebuild_head(headers: &mut HeaderMap, style: &HeadStyle<'_>, forwarded: &ForwardedFor<'_>) {
    headers.remove(header::EXPECT); // the gateway has answered it
    let mut has_hops = false;
    remove_classes(headers, |class| {
        has_hops |= class == FieldClass::Hops;
        match class {
            FieldClass::Connection | FieldClass::Override | FieldClass::OtherHop => true,
            FieldClass::Proxy => !forwarded.trusts_peer,
            FieldClass::Own | FieldClass::Hops => false,
        }
    });
    join_cookies(headers);
    if has_hops {
        forwarded.remove_hops(style.forwarded, headers);
    }
    forwarded.write(style.forwarded, headers);
    traceparent::write(style.trace, headers);
    style.edits.apply(headers);
    remove_other_spellings(headers, style.credentials, forwarded.trusts_peer);
}

/// HTTP/2 splits cookies into several fields, of which servers of HTTP/1.1 may take one, or join them as other lists
/// (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let mut fields = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes);
    let (Some(_), Some(_)) = (fields.next(), fields.next()) else { return };
    let all: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(joined) = HeaderValue::from_bytes(&all.join(&b"; "[..])) {
        headers.insert(header::COOKIE, joined);
    }
}

/// Removes fields that some servers cannot tell from one of the gateway, or from another one that is there: for CGI, WSGI
/// and PHP an underscore is a hyphen. A key in such a spelling is one that the gateway has not read.
fn remove_other_spellings(headers: &mut HeaderMap, credentials: &[HeaderName], trusts_peer: bool) {
    let has_underscore = |name: &HeaderName| name.as_str().contains('_');
    if !headers.keys().any(has_underscore) && !credentials.iter().any(has_underscore) {
        return;
    }
    let is_other = |name: &&HeaderName| {
        let spelled = hyphenated(name);
        let is_credential = credentials.iter().any(|field| hyphenated(field) == spelled);
        is_credential || (has_underscore(name) && is_protected(&spelled, headers, trusts_peer))
    };
    let others = headers.keys().filter(|name| !credentials.contains(name)).filter(is_other);
    for name in others.cloned().collect::<Vec<_>>() {
        headers.remove(name);
    }
}

fn hyphenated(name: &HeaderName) -> String {
    name.as_str().replace('_', "-")
}

/// True for fields that are not the caller's to write, and for those that this request has.
fn is_protected(name: &str, headers: &HeaderMap, trusts_peer: bool) -> bool {
    let is_own = match FieldClass::of(name) {
        FieldClass::Own => true,
        FieldClass::Proxy => trusts_peer,
        _ => false,
    };
    !is_own || name == "content-length" || headers.contains_key(name)
}

/// Removes the fields of the connection, and those that `Connection` names. `TE: trailers` stays: it says that the caller
/// takes trailers, which gRPC needs.
pub(crate) fn remove_connection_fields(headers: &mut HeaderMap) {
    remove_classes(headers, |class| class == FieldClass::Connection);
}

/// The same with fields of other classes; those of the connection are always among them.
fn remove_classes(headers: &mut HeaderMap, mut is_removed: impl FnMut(FieldClass) -> bool) {
    let removed = headers.keys().filter(|name| is_removed(FieldClass::of(name.as_str()))).cloned();
    let removed = removed.collect::<SmallVec<[HeaderName; 4]>>();
    if removed.is_empty() {
        return; // neither `Connection` nor `TE` is there
    }
    let takes_trailers = tokens(headers, &header::TE).any(|token| token.eq_ignore_ascii_case("trailers"));
    // What describes the body is end to end: a caller must not have it left out behind the gateway that read it.
    let is_optional = |name: &HeaderName| *name != header::HOST && !name.as_str().starts_with("content-");
    let named = tokens(headers, &header::CONNECTION).filter_map(|name| name.parse().ok()).filter(is_optional);
    for name in named.collect::<SmallVec<[HeaderName; 4]>>() {
        headers.remove(name);
    }
    for name in removed {
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

/// The other end of the caller's connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ForwardingPeer<'a> {
    pub(crate) address: Option<std::net::IpAddr>,
    /// The address as text, if it was written before.
    pub(crate) text: Option<&'a str>,
}

/// What a server is told of the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForwardedFor<'a> {
    /// Who forwards the request to the gateway, perhaps the caller itself.
    pub(crate) peer: ForwardingPeer<'a>,
    /// Whether what the peer says of earlier hops is kept.
    pub(crate) trusts_peer: bool,
    /// The `Host` of the caller.
    pub(crate) host: Option<&'a HeaderValue>,
    /// Whether the caller's connection is encrypted.
    pub(crate) is_tls: bool,
}

impl ForwardedFor<'_> {
    /// Removes what the peer says of earlier hops, unless it is trusted and the style has it.
    fn remove_hops(&self, style: ForwardedStyle, headers: &mut HeaderMap) {
        if !self.trusts_peer || !style.is_x() {
            for name in [&X_FORWARDED_FOR, &X_FORWARDED_HOST, &X_FORWARDED_PROTO] {
                headers.remove(name);
            }
        }
        if !self.trusts_peer || !style.is_forwarded() {
            headers.remove(header::FORWARDED);
        }
    }

    /// Writes the fields of a style.
    fn write(&self, style: ForwardedStyle, headers: &mut HeaderMap) {
        if style.is_x() {
            self.write_x_forwarded(headers);
        }
        if style.is_forwarded() {
            self.write_forwarded(headers);
        }
    }

    fn write_x_forwarded(&self, headers: &mut HeaderMap) {
        match self.peer {
            ForwardingPeer { text: Some(text), .. } => append_to_list(headers, X_FORWARDED_FOR, text),
            ForwardingPeer { address: Some(peer), .. } => append_to_list(headers, X_FORWARDED_FOR, &peer.to_string()),
            ForwardingPeer { address: None, .. } => {}
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
        let address = match self.peer.address {
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
    if !headers.contains_key(&name) {
        if let Ok(value) = HeaderValue::from_str(element) {
            headers.insert(name, value);
        }
        return;
    }
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
        let peer = ForwardingPeer { address: Some("2001:db8::1".parse().unwrap()), text: None };
        let edits = HeaderEdits::default();
        let style = HeadStyle { forwarded: style, trace: TraceStyle::Pass, edits: &edits, credentials: &[] };
        rebuild_head(&mut headers, &style, &ForwardedFor { peer, trusts_peer, host: Some(&host), is_tls: true });
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
            ("x_api_key", "another's"),
            ("x_token", "shown"),
            ("x-token", "another's"),
        ]);
        let credentials = [HeaderName::from_static("x-api-key"), HeaderName::from_static("x_token")];
        let set = vec![
            (HeaderName::from_static("x-team"), HeaderValue::from_static("ours")),
            (HeaderName::from_static("x-rewrite-url"), HeaderValue::from_static("/ours")),
        ];
        let peer = ForwardingPeer::default();
        let forwarded = ForwardedFor { peer, trusts_peer: true, host: None, is_tls: false };
        let edits = HeaderEdits { set, ..HeaderEdits::default() };
        let style = HeadStyle {
            forwarded: ForwardedStyle::Off,
            trace: TraceStyle::Pass,
            edits: &edits,
            credentials: &credentials,
        };
        rebuild_head(&mut headers, &style, &forwarded);
        let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        let expected = ["x-rewrite-url", "x-team", "x_own", "x_token"];
        assert_eq!(left, expected, "a route may set what a caller may not");
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
