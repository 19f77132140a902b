//! One key of an issuer, prepared for the algorithms that are pinned and fit it. A key cannot verify anything else, so
//! that a public key never serves as a shared secret.

use std::fmt;

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{ParsedPublicKey, RsaPublicKeyComponents};

use crate::JwtAlgorithm;
use crate::jwt_algorithm::Verification;

/// A key that verifies tokens.
pub(crate) struct SigningKey {
    /// Its id; tokens name it.
    pub(super) kid: Option<String>,
    prepared: Vec<(JwtAlgorithm, Prepared)>,
}

enum Prepared {
    SharedSecret(Box<hmac::Key>),
    Public(ParsedPublicKey),
}

/// The bytes of a key.
pub(super) enum KeyBytes<'a> {
    SharedSecret(&'a [u8]),
    /// SubjectPublicKeyInfo of any kind, DER.
    PublicInfo(&'a [u8]),
    Rsa {
        n: &'a [u8],
        e: &'a [u8],
    },
    /// An uncompressed point of P-256.
    P256(&'a [u8]),
    /// An uncompressed point of P-384.
    P384(&'a [u8]),
    Ed25519(&'a [u8]),
}

/// Shortest shared secret: that of the shortest hash (RFC 7518, 3.2).
pub(super) const SECRET_BYTES_MIN: usize = 32;

impl SigningKey {
    /// Prepares a key for those of `algorithms` that fit it; `None` if none does.
    pub(super) fn prepare(
        kid: Option<String>,
        bytes: &KeyBytes<'_>,
        algorithms: impl IntoIterator<Item = JwtAlgorithm>,
    ) -> Option<SigningKey> {
        let prepared: Vec<(JwtAlgorithm, Prepared)> = algorithms
            .into_iter()
            .filter_map(|algorithm| prepare(bytes, algorithm).map(|prepared| (algorithm, prepared)))
            .collect();
        (!prepared.is_empty()).then_some(SigningKey { kid, prepared })
    }

    /// True if the key can verify this algorithm.
    pub(super) fn fits(&self, algorithm: JwtAlgorithm) -> bool {
        self.prepared.iter().any(|(own, _)| *own == algorithm)
    }

    /// Whether the signature of `message` is right. HMACs are compared in constant time.
    pub(super) fn verify(&self, algorithm: JwtAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        self.prepared.iter().filter(|(own, _)| *own == algorithm).any(|(_, prepared)| match prepared {
            Prepared::SharedSecret(key) => hmac::verify(key, message, signature).is_ok(),
            Prepared::Public(key) => key.verify_sig(message, signature).is_ok(),
        })
    }
}

fn prepare(bytes: &KeyBytes<'_>, algorithm: JwtAlgorithm) -> Option<Prepared> {
    match (bytes, algorithm.verification()) {
        (KeyBytes::SharedSecret(secret), Verification::SharedSecret(hash)) => {
            (secret.len() >= SECRET_BYTES_MIN).then(|| Prepared::SharedSecret(Box::new(hmac::Key::new(hash, secret))))
        }
        (KeyBytes::PublicInfo(der), Verification::Rsa(parameters)) => {
            ParsedPublicKey::new(parameters, der).ok().map(Prepared::Public)
        }
        (KeyBytes::PublicInfo(der), Verification::Curve(curve)) => {
            ParsedPublicKey::new(curve, der).ok().map(Prepared::Public)
        }
        (KeyBytes::Rsa { n, e }, Verification::Rsa(parameters)) => {
            RsaPublicKeyComponents { n, e }.to_parsed_public_key(parameters).ok().map(Prepared::Public)
        }
        (KeyBytes::P256(point), Verification::Curve(curve)) if algorithm == JwtAlgorithm::Es256 => {
            ParsedPublicKey::new(curve, point).ok().map(Prepared::Public)
        }
        (KeyBytes::P384(point), Verification::Curve(curve)) if algorithm == JwtAlgorithm::Es384 => {
            ParsedPublicKey::new(curve, point).ok().map(Prepared::Public)
        }
        (KeyBytes::Ed25519(point), Verification::Curve(curve)) if algorithm == JwtAlgorithm::EdDsa => {
            ParsedPublicKey::new(curve, point).ok().map(Prepared::Public)
        }
        _ => None,
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithms: Vec<&str> = self.prepared.iter().map(|(algorithm, _)| algorithm.name()).collect();
        f.debug_struct("SigningKey").field("kid", &self.kid).field("algorithms", &algorithms).finish_non_exhaustive()
    }
}
