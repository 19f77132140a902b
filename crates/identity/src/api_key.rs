//! API keys: found by the digest of their secret, in a directory that a database or a file fills.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use tollgate_core::Time;

use crate::credential_source::Presented;
use crate::{ApiKeySpec, CredentialFailure, Evidence, ProvenIdentity};

/// Longest key that is looked up; longer ones are not even hashed.
const KEY_BYTES_MAX: usize = 512;

/// The SHA-256 digest of a key. Keys are random, so that a digest without salt tells nothing of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyDigest(pub [u8; 32]);

impl KeyDigest {
    /// The digest of a key, as its holder presents it.
    pub fn of(key: &str) -> KeyDigest {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, key.as_bytes()).as_ref());
        KeyDigest(bytes)
    }

    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<KeyDigest> {
        let mut bytes = [0; 32];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return None;
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            let digit = |symbol: u8| char::from(symbol).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(KeyDigest(bytes))
    }

    /// Compares in constant time.
    pub fn equals(&self, other: &KeyDigest) -> bool {
        verify_slices_are_equal(&self.0, &other.0).is_ok()
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest(…)")
    }
}

/// A key of the directory, as one of its secrets finds it.
#[derive(Clone, Debug)]
pub struct DirectoryKey {
    /// The namespace in which it is valid; `None` for all.
    pub namespace: Option<Arc<str>>,
    /// Digest of the secret.
    pub digest: KeyDigest,
    /// When the secret ceases to be valid.
    pub expires_at: Option<Time>,
    /// True once it was revoked.
    pub is_revoked: bool,
    /// Whose it is.
    pub identity: Arc<ProvenIdentity>,
}

/// Where keys are found. Implementors promise an answer from memory, without a lock that a writer holds for long: every
/// request that shows a key asks.
pub trait KeyDirectory: Send + Sync {
    /// The key with this digest.
    fn find(&self, digest: &KeyDigest) -> Option<DirectoryKey>;
}

/// A directory without keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoKeys;

impl KeyDirectory for NoKeys {
    fn find(&self, _: &KeyDigest) -> Option<DirectoryKey> {
        None
    }
}

/// Finds the key of a request. `Ok(None)`: it shows none.
pub(crate) struct ApiKeyVerifier {
    spec: ApiKeySpec,
    directory: Arc<dyn KeyDirectory>,
}

impl ApiKeyVerifier {
    pub(crate) fn new(spec: ApiKeySpec, directory: Arc<dyn KeyDirectory>) -> ApiKeyVerifier {
        ApiKeyVerifier { spec, directory }
    }

    pub(crate) fn verify(
        &self,
        evidence: &Evidence<'_>,
        now: Time,
    ) -> Result<Option<Arc<ProvenIdentity>>, CredentialFailure> {
        let key = match self.spec.source.find(evidence) {
            Presented::Nothing => return Ok(None),
            Presented::Malformed => return Err(CredentialFailure::Malformed),
            Presented::Secret(key) if key.len() > KEY_BYTES_MAX => return Err(CredentialFailure::TooLong),
            Presented::Secret(key) => key,
        };
        let digest = KeyDigest::of(&key);
        let found = self.directory.find(&digest).filter(|found| found.digest.equals(&digest));
        let Some(found) = found.filter(|found| found.namespace.as_deref().is_none_or(|own| own == evidence.namespace))
        else {
            return Err(CredentialFailure::UnknownKey);
        };
        match found.expires_at {
            _ if found.is_revoked => Err(CredentialFailure::Revoked),
            Some(end) if end <= now => Err(CredentialFailure::Expired),
            _ => Ok(Some(found.identity)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_as_hex_and_never_shows_in_logs() {
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let digest = KeyDigest::from_hex(hex).unwrap();
        assert!(digest.equals(&KeyDigest::of("abc")) && !digest.equals(&KeyDigest::of("abd")));
        assert_eq!(KeyDigest::from_hex(&hex.to_uppercase()), Some(digest));
        for bad in ["", "ba", &hex[1..], &format!("{hex}00"), &hex.replace('b', "x")] {
            assert_eq!(KeyDigest::from_hex(bad), None, "{bad}");
        }
        assert_eq!(format!("{digest:?}"), "KeyDigest(…)");
    }
}
