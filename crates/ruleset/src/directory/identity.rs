//! Identities of clients in a directory.

use std::borrow::Cow;

use tollgate_core::{Digest, KeyHasher, Secret};
use tollgate_rules::address::{IpKey, parse_ip};

/// The canonical client key of an identity. Only addresses have several spellings; an IPv6 network is represented by
/// its first address.
pub fn canonical_client_key(client_key: &str, ipv6_prefix: u8) -> Cow<'_, str> {
    match Identity::of(client_key) {
        Identity::Ip(text) if let Some(bits) = parse_ip(text) => {
            let first = IpKey::new(bits, ipv6_prefix).bits();
            Cow::Owned(format!("ip:{}", IpKey::new(first, 128)))
        }
        _ => Cow::Borrowed(client_key),
    }
}

/// A kind of identity and its value: `user:42`, `key:abc`, `ip:192.0.2.1`, `org:acme`, or a client key without prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity<'a> {
    Raw(&'a str),
    Key(&'a str),
    User(&'a str),
    Ip(&'a str),
    Org(&'a str),
}

impl<'a> Identity<'a> {
    /// Reads a client key.
    pub(crate) fn of(client_key: &'a str) -> Identity<'a> {
        match client_key.split_once(':') {
            Some(("key", value)) => Identity::Key(value),
            Some(("user", value)) => Identity::User(value),
            Some(("ip", value)) => Identity::Ip(value),
            Some(("org", value)) => Identity::Org(value),
            _ => Identity::Raw(client_key),
        }
    }

    /// Its client key.
    pub(crate) fn client_key(self) -> String {
        match self {
            Identity::Raw(value) => value.to_owned(),
            Identity::Key(value) => format!("key:{value}"),
            Identity::User(value) => format!("user:{value}"),
            Identity::Ip(value) => format!("ip:{value}"),
            Identity::Org(value) => format!("org:{value}"),
        }
    }

    /// The kind as a bit, for tables that hold only some kinds.
    pub(crate) fn bit(self) -> u8 {
        match self {
            Identity::Raw(_) => 1,
            Identity::Key(_) => 2,
            Identity::User(_) => 4,
            Identity::Ip(_) => 8,
            Identity::Org(_) => 16,
        }
    }

    /// The digest of the identity; IPv6 clients are identified by their network.
    pub(crate) fn digest(self, secret: Secret, ipv6_prefix: u8) -> Digest {
        let mut hasher = KeyHasher::new(secret);
        hasher.word(u64::from(self.bit()));
        match self {
            Identity::Raw(value) | Identity::Key(value) | Identity::User(value) | Identity::Org(value) => {
                hasher.part(value.as_bytes());
            }
            Identity::Ip(value) => match parse_ip(value) {
                Some(bits) => hasher.part(&IpKey::new(bits, ipv6_prefix).bits().to_be_bytes()),
                None => hasher.part(value.as_bytes()),
            },
        }
        hasher.finish()
    }
}
