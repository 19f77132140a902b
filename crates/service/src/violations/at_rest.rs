//! Client keys as the database holds them: digests under the key of this site, unless plain keys are wanted.
//!
//! A key may be a secret (an API key) or personal (an address), and tables are copied, backed up and read by many. The
//! kind of client stays readable, and the rows of a known key can be found: equal keys have equal digests.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};

/// Kinds of clients, which stay readable.
const KINDS: [&str; 4] = ["user:", "key:", "ip:", "org:"];
/// Entries of Envoy's descriptors whose values come from its configuration and identify no client.
const CONFIGURED: [&str; 4] = ["generic_key", "header_match", "destination_cluster", "source_cluster"];
/// Bytes of a digest that are kept: 96 bits tell a billion clients apart.
const DIGEST_BYTES: usize = 12;

/// How client keys are stored.
#[derive(Clone, Debug)]
pub struct KeyHashing(Option<Key>);

impl KeyHashing {
    /// In plain text.
    pub const fn plain() -> KeyHashing {
        KeyHashing(None)
    }

    /// As digests under the site's key, which all its nodes share.
    pub fn hashed(site_key: &[u8]) -> KeyHashing {
        KeyHashing(Some(Key::new(HMAC_SHA256, site_key)))
    }

    /// A client key as it is stored: `user:42` as `user:#1a2b…`, `generic_key=a,remote_address=192.0.2.1` as
    /// `generic_key=a,remote_address=#1a2b…`. A digest, and the placeholder for no client, stay.
    pub fn of(&self, client_key: &str) -> String {
        let Some(key) = self.0.as_ref().filter(|_| client_key != super::client::NO_CLIENT) else {
            return client_key.to_owned();
        };
        if let Some(kind) = KINDS.iter().find(|kind| client_key.starts_with(**kind)) {
            return format!("{kind}{}", digest(key, client_key.get(kind.len()..).unwrap_or_default()));
        }
        if client_key.contains('=') {
            let entry = |entry: &str| match entry.split_once('=') {
                Some((name, value)) if !CONFIGURED.contains(&name) => format!("{name}={}", digest(key, value)),
                _ => entry.to_owned(),
            };
            return client_key.split(',').map(entry).collect::<Vec<String>>().join(",");
        }
        digest(key, client_key)
    }

    /// Every form in which rows may hold a client key: plain ones are older than this setting, or were written with
    /// SQL.
    pub fn names(&self, client_key: &str) -> Vec<String> {
        let hashed = self.of(client_key);
        if hashed == client_key { vec![hashed] } else { vec![hashed, client_key.to_owned()] }
    }
}

/// True for a key that is stored as a digest.
pub fn is_digest(client_key: &str) -> bool {
    let value = KINDS.iter().find_map(|kind| client_key.strip_prefix(*kind)).unwrap_or(client_key);
    let hex = value.strip_prefix('#').unwrap_or_default();
    hex.len() == 2 * DIGEST_BYTES && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn digest(key: &Key, value: &str) -> String {
    if is_digest(value) {
        return value.to_owned();
    }
    let tag = sign(key, value.as_bytes());
    let hex = tag.as_ref().iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}"));
    format!("#{}", hex.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_digests_that_keep_their_kind_and_are_found_again() {
        let site = KeyHashing::hashed(b"the key of this site");
        let hashed = site.of("user:42");
        assert!(hashed.starts_with("user:#") && is_digest(&hashed), "{hashed}");
        assert_eq!(site.of("user:42"), hashed);
        assert_eq!(site.of(&hashed), hashed, "a digest is found as it is shown");
        assert_ne!(KeyHashing::hashed(b"another").of("user:42"), hashed);
        assert_eq!(site.names("user:42"), [hashed, "user:42".to_owned()]);
        assert!(is_digest(&site.of("raw-secret")) && !site.of("raw-secret").contains("raw"));
        assert_eq!(site.of("-"), "-", "no client is named");
        assert_eq!(KeyHashing::plain().of("user:42"), "user:42");
        assert_eq!(KeyHashing::plain().names("user:42"), ["user:42"]);
        for plain in ["user:#", "user:#1a2b", "key:#1A2B3C4D5E6F1A2B3C4D5E6F", "user:42", ""] {
            assert!(!is_digest(plain), "{plain}");
        }
    }

    #[test]
    fn descriptors_keep_their_names_and_what_is_configured() {
        let hashed = KeyHashing::hashed(b"site").of("generic_key=checkout,remote_address=192.0.2.1,slow");
        let [generic, address, slow] = hashed.split(',').collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((generic, slow), ("generic_key=checkout", "slow"));
        assert!(is_digest(address.strip_prefix("remote_address=").unwrap()), "{address}");
        assert!(!hashed.contains("192.0.2.1"));
    }
}
