//! A set of keys: a JSON Web Key Set (RFC 7517), a public key, or a shared secret.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Map, Value};

use super::signing_key::{KeyBytes, SECRET_BYTES_MIN, SigningKey};
use crate::JwtAlgorithm;

/// Longest key set.
pub(super) const JWKS_BYTES_MAX: usize = 256 * 1024;
/// Most keys of a set.
const KEYS_MAX: usize = 100;
/// Longest id of a key.
const KID_BYTES_MAX: usize = 256;
/// Longest shared secret.
const SECRET_BYTES_MAX: usize = 1024;
/// Keys that are tried for a token that names none.
const TRIED_MAX: usize = 4;

/// The keys of one issuer.
#[derive(Debug, Default)]
pub(crate) struct KeySet {
    keys: Vec<SigningKey>,
}

/// Why a set of keys cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwksError(String);

impl fmt::Display for JwksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JwksError {}

/// Whether a set may hold shared secrets: one that is fetched may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedSecrets {
    Accepted,
    Ignored,
}

impl KeySet {
    /// Reads a JSON Web Key Set. Keys of other kinds, uses or algorithms are passed over.
    pub(crate) fn from_jwks(
        bytes: &[u8],
        algorithms: &[JwtAlgorithm],
        secrets: SharedSecrets,
    ) -> Result<KeySet, JwksError> {
        if bytes.len() > JWKS_BYTES_MAX {
            return Err(JwksError(format!("the key set is longer than {JWKS_BYTES_MAX} bytes")));
        }
        let value: Value =
            serde_json::from_slice(bytes).map_err(|error| JwksError(format!("the key set is not JSON: {error}")))?;
        let Some(keys) = value.get("keys").and_then(Value::as_array) else {
            return Err(JwksError("the key set has no `keys`".to_owned()));
        };
        if keys.len() > KEYS_MAX {
            return Err(JwksError(format!("the key set has {} keys, at most {KEYS_MAX} are read", keys.len())));
        }
        let keys: Vec<SigningKey> =
            keys.iter().filter_map(Value::as_object).filter_map(|key| read_key(key, algorithms, secrets)).collect();
        match keys.is_empty() {
            true => Err(JwksError(format!("the key set has no key for {}", names(algorithms)))),
            false => Ok(KeySet { keys }),
        }
    }

    /// Reads a public key, PEM.
    pub(crate) fn from_pem(bytes: &[u8], algorithms: &[JwtAlgorithm]) -> Result<KeySet, JwksError> {
        let info = SubjectPublicKeyInfoDer::from_pem_slice(bytes).map_err(|_| {
            let message = "it holds no `PUBLIC KEY`; of a private key or certificate make one with: \
                           openssl pkey -in FILE -pubout, or: openssl x509 -in FILE -noout -pubkey";
            JwksError(message.to_owned())
        })?;
        let key = SigningKey::prepare(None, &KeyBytes::PublicInfo(info.as_ref()), algorithms.iter().copied());
        let key = key.ok_or_else(|| JwksError(format!("the key does not fit {}", names(algorithms))))?;
        Ok(KeySet { keys: vec![key] })
    }

    /// Takes a shared secret. White space around it does not belong to it.
    pub(crate) fn from_secret(bytes: &[u8], algorithms: &[JwtAlgorithm]) -> Result<KeySet, JwksError> {
        let secret = bytes.trim_ascii();
        if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&secret.len()) {
            let message = format!("a shared secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes");
            return Err(JwksError(format!("{message}; make one with: openssl rand -hex 32")));
        }
        let key = SigningKey::prepare(None, &KeyBytes::SharedSecret(secret), algorithms.iter().copied());
        Ok(KeySet { keys: key.into_iter().collect() })
    }

    /// The keys that may have signed a token: those of its id. A token without an id is tried with a few, one with an
    /// id also with keys that have none.
    pub(super) fn candidates(&self, kid: Option<&str>, algorithm: JwtAlgorithm) -> impl Iterator<Item = &SigningKey> {
        let matches = move |key: &&SigningKey| match (kid, key.kid.as_deref()) {
            (Some(asked), Some(own)) => asked == own,
            _ => true,
        };
        self.keys.iter().filter(move |key| key.fits(algorithm)).filter(matches).take(TRIED_MAX)
    }

    /// The number of keys.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }
}

fn read_key(key: &Map<String, Value>, algorithms: &[JwtAlgorithm], secrets: SharedSecrets) -> Option<SigningKey> {
    let text = |name: &str| key.get(name).and_then(Value::as_str);
    if text("use").is_some_and(|purpose| purpose != "sig") || !may_verify(key) {
        return None;
    }
    let kid = match key.get("kid") {
        None => None,
        Some(kid) => Some(kid.as_str().filter(|kid| kid.len() <= KID_BYTES_MAX)?.to_owned()),
    };
    let own = match key.get("alg") {
        None => None,
        Some(alg) => Some(JwtAlgorithm::from_name(alg.as_str()?)?),
    };
    let fitting = algorithms.iter().copied().filter(|algorithm| own.is_none_or(|own| own == *algorithm));
    let number = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
    let prepared = |bytes: &KeyBytes<'_>| SigningKey::prepare(kid.clone(), bytes, fitting.clone());
    match (text("kty")?, text("crv")) {
        ("oct", _) if secrets == SharedSecrets::Accepted => prepared(&KeyBytes::SharedSecret(&number("k")?)),
        ("RSA", _) => {
            let (n, e) = (number("n")?, number("e")?);
            prepared(&KeyBytes::Rsa { n: without_zeros(&n), e: without_zeros(&e) })
        }
        ("EC", Some("P-256")) => prepared(&KeyBytes::P256(&point(&number("x")?, &number("y")?, 32)?)),
        ("EC", Some("P-384")) => prepared(&KeyBytes::P384(&point(&number("x")?, &number("y")?, 48)?)),
        ("OKP", Some("Ed25519")) => prepared(&KeyBytes::Ed25519(&number("x")?)),
        _ => None,
    }
}

fn may_verify(key: &Map<String, Value>) -> bool {
    key.get("key_ops").and_then(Value::as_array).is_none_or(|ops| ops.iter().any(|op| op == "verify"))
}

/// An uncompressed point (SEC 1).
fn point(x: &[u8], y: &[u8], width: usize) -> Option<Vec<u8>> {
    (x.len() == width && y.len() == width).then(|| [&[4], x, y].concat())
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let start = number.iter().position(|byte| *byte != 0).unwrap_or(number.len());
    number.get(start..).unwrap_or_default()
}

fn names(algorithms: &[JwtAlgorithm]) -> String {
    algorithms.iter().map(|algorithm| algorithm.name()).collect::<Vec<_>>().join(", ")
}
