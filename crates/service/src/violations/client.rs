//! Who a refused request was from, and what it asked for, as rows name them.

use tollgate_core::{Attribute, Request};
use tollgate_rules::path::{Endpoint, EscapedSlash};

/// What stands where a request says nothing.
pub(super) const NO_CLIENT: &str = "-";
/// Longest text that is kept; callers choose theirs.
const BYTES_MAX: usize = 1024;

/// The caller, in pieces, so that nothing needs to be put together to look it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ViolationClient<'a> {
    /// `key:`, `user:`, `ip:`, `org:`, or nothing.
    pub(super) kind: &'static str,
    pub(super) value: &'a str,
    /// What a caller is known by that says none of these: the descriptors of a proxy.
    pub(super) descriptors: &'a [(&'a str, &'a str)],
}

impl<'a> ViolationClient<'a> {
    /// As the caller names itself, or else by the most particular of what the request says. `client_key: "user:42"` and
    /// `user_id: "42"` are the same one. A request of Envoy is known by its descriptor.
    pub(super) fn of(request: &Request<'a>) -> ViolationClient<'a> {
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

    /// The whole key; a descriptor as `name=value,name=value`.
    pub(super) fn text(self) -> String {
        let mut text = self.kind.to_owned();
        text.push_str(shortened(self.value));
        for (place, (name, value)) in self.descriptors.iter().enumerate() {
            text.push_str(if place > 0 { "," } else { "" });
            text.push_str(shortened(name));
            // One of Envoy may have a key and no value.
            text.push_str(if value.is_empty() { "" } else { "=" });
            text.push_str(shortened(value));
            if text.len() > BYTES_MAX {
                break;
            }
        }
        shortened(&text).to_owned()
    }
}

/// What was asked for: the one spelling of its path, without method and query.
pub(super) fn path(request: &Request<'_>) -> String {
    // Whoever refuses escaped slashes has refused the request for them already.
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
    fn a_caller_has_one_name_however_it_is_told() {
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
    fn paths_are_told_in_one_spelling_and_without_what_follows() {
        let of = |endpoint| path(&Request::new().with(Attribute::Endpoint, endpoint));
        assert_eq!(of("POST /api/../a//b/?token=secret#x"), of("/a/b/"));
        assert!(!of("/a?token=secret").contains("secret"));
        assert_eq!(of("GET /a%2Fb"), "/a%2Fb");
        assert_eq!((of("nonsense").as_str(), path(&Request::new()).as_str()), ("-", "-"));
        assert_eq!(of(&format!("/{}", "x".repeat(3000))).len(), 1024);
    }
}
