//! The client and the path of a denied request, as rows store them.

use tollgate_core::{Attribute, KeyHasher, Request};
use tollgate_rules::path::{Endpoint, EscapedSlash};

/// Stands for a client or path that the request does not name.
pub(super) const NO_CLIENT: &str = "-";
/// Longest text that is stored; callers choose theirs.
const BYTES_MAX: usize = 1024;

/// The client in parts, so that a look-up allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ViolationClient<'a> {
    /// `key:`, `user:`, `ip:`, `org:`, or nothing.
    pub(super) kind: &'static str,
    pub(super) value: &'a str,
    /// The descriptor entries of a proxy, for a client that has none of these.
    pub(super) descriptors: &'a [(&'a str, &'a str)],
}

impl<'a> ViolationClient<'a> {
    /// The `client_key`, or else the most specific attribute of the request. `client_key: "user:42"` and `user_id:
    /// "42"` are the same client. A request of Envoy is identified by its descriptor.
    pub(crate) fn of(request: &Request<'a>) -> ViolationClient<'a> {
        const KINDS: [(&str, Attribute); 4] = [
            ("key:", Attribute::ApiKey),
            ("user:", Attribute::UserId),
            ("ip:", Attribute::Ip),
            ("org:", Attribute::Org),
        ];
        let typed = |kind, value| ViolationClient { kind, value, descriptors: &[] };
        if let Some(key) = request.get(Attribute::ClientKey) {
            let known = KINDS.iter().find_map(|(kind, _)| Some(typed(kind, key.strip_prefix(kind)?)));
            return known.unwrap_or_else(|| typed("", key));
        }
        let known = KINDS.iter().find_map(|(kind, attribute)| Some(typed(kind, request.get(*attribute)?)));
        let nameless = if request.custom.is_empty() { NO_CLIENT } else { "" };
        known.unwrap_or(ViolationClient { kind: "", value: nameless, descriptors: request.custom })
    }

    /// True if the request names none.
    pub(crate) fn is_unknown(self) -> bool {
        self.kind.is_empty() && self.value == NO_CLIENT && self.descriptors.is_empty()
    }

    /// Adds it to a digest, without an allocation.
    pub(crate) fn hash(self, hasher: &mut KeyHasher) {
        hasher.part(self.kind.as_bytes());
        hasher.part(self.value.as_bytes());
        for (name, value) in self.descriptors {
            hasher.part(name.as_bytes());
            hasher.part(value.as_bytes());
        }
    }

    /// The whole key; a descriptor as `name=value,name=value`.
    pub(crate) fn text(self) -> String {
        let mut text = String::new();
        self.append(BYTES_MAX, &mut text);
        text
    }

    /// Appends the key, cut to so many bytes.
    fn append(self, bytes_max: usize, text: &mut String) {
        let start = text.len();
        let mut push = |part: &str| {
            let room = bytes_max.saturating_sub(text.len() - start);
            text.push_str(part.get(..part.floor_char_boundary(room)).unwrap_or_default());
            part.len() <= room
        };
        let mut has_room = push(self.kind) && push(self.value);
        for (index, (name, value)) in self.descriptors.iter().enumerate() {
            // An entry of Envoy may have no value.
            let parts = [if index > 0 { "," } else { "" }, name, if value.is_empty() { "" } else { "=" }, value];
            has_room = has_room && parts.into_iter().all(&mut push);
        }
    }
}

/// Appends the client of a request, cut to so many bytes.
#[inline]
pub(crate) fn append_client_text(request: &Request<'_>, bytes_max: usize, text: &mut String) {
    ViolationClient::of(request).append(bytes_max, text);
}

/// The client of a request, as text.
pub(crate) fn client_text(request: &Request<'_>) -> String {
    ViolationClient::of(request).text()
}

/// The normalized path, without method and query.
pub(super) fn path(request: &Request<'_>) -> String {
    // A rule set that rejects escaped slashes has rejected the request already.
    let endpoint = request.get(Attribute::Endpoint).and_then(|text| Endpoint::parse(text, EscapedSlash::Keep).ok());
    endpoint.map_or_else(|| NO_CLIENT.to_owned(), |endpoint| shortened(&endpoint.path).to_owned())
}

fn shortened(text: &str) -> &str {
    text.get(..text.floor_char_boundary(BYTES_MAX)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_one_name_whichever_attribute_names_it() {
        let of = |attribute, value| ViolationClient::of(&Request::new().with(attribute, value));
        for (named, attribute, value) in [
            ("key:abc", Attribute::ApiKey, "abc"),
            ("user:42", Attribute::UserId, "42"),
            ("ip:::1", Attribute::Ip, "::1"),
        ] {
            assert_eq!(of(attribute, value), of(Attribute::ClientKey, named));
            assert_eq!(of(attribute, value).text(), named);
        }
        assert_eq!(of(Attribute::ClientKey, "org:acme").text(), "org:acme");
        assert_eq!(of(Attribute::Org, "acme").text(), "org:acme");
        assert_eq!(of(Attribute::Tier, "free").text(), "-");
        let many = Request::new().with(Attribute::Ip, "192.0.2.1").with(Attribute::UserId, "42");
        assert_eq!(ViolationClient::of(&many).text(), "user:42");
        assert_eq!(ViolationClient::of(&many.with(Attribute::ApiKey, "k")).text(), "key:k");
        assert_eq!(of(Attribute::ApiKey, &"é".repeat(5000)).text().len(), 1024);
        let custom = [("generic_key", "checkout"), ("remote_address", "192.0.2.1"), ("slow", "")];
        let descriptor = Request::new().with_custom(&custom);
        assert_eq!(ViolationClient::of(&descriptor).text(), "generic_key=checkout,remote_address=192.0.2.1,slow");
        let long = "x".repeat(900);
        let custom = [(long.as_str(), long.as_str()); 9];
        assert_eq!(ViolationClient::of(&Request::new().with_custom(&custom)).text().len(), 1024);
    }

    #[test]
    fn paths_are_normalized_and_have_no_query() {
        let of = |endpoint| path(&Request::new().with(Attribute::Endpoint, endpoint));
        assert_eq!(of("POST /api/../a//b/?token=secret#x"), of("/a/b/"));
        assert!(!of("/a?token=secret").contains("secret"));
        assert_eq!(of("GET /a%2Fb"), "/a%2Fb");
        assert_eq!((of("nonsense").as_str(), path(&Request::new()).as_str()), ("-", "-"));
        assert_eq!(of(&format!("/{}", "x".repeat(3000))).len(), 1024);
    }
}
