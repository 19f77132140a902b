//! An issuer of tokens: keys of every kind, what it signs with them, and the key set that it publishes.

use std::sync::OnceLock;

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tollgate_identity::JwtAlgorithm;

/// The wall time of the tests that issue tokens.
pub const NOW: u64 = 1_800_000_000;
/// Shared with the gateway.
pub const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

pub struct Issuer {
    /// The beginning of its keys' ids.
    name: &'static str,
    p256: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
}

/// One for all issuers: it is the only one that takes long to make.
fn rsa() -> &'static RsaKeyPair {
    static RSA: OnceLock<RsaKeyPair> = OnceLock::new();
    RSA.get_or_init(|| RsaKeyPair::generate(KeySize::Rsa2048).unwrap())
}

impl Issuer {
    pub fn new(name: &'static str) -> Issuer {
        Issuer {
            name,
            p256: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap(),
            ed25519: Ed25519KeyPair::generate().unwrap(),
        }
    }

    /// A token of a user, good for an hour.
    pub fn token(&self, algorithm: JwtAlgorithm, user: &str) -> String {
        self.signed(algorithm, &claims(user))
    }

    /// A token with these claims.
    pub fn signed(&self, algorithm: JwtAlgorithm, claims: &Value) -> String {
        self.signed_with(algorithm, &json!({ "alg": algorithm.name(), "kid": self.kid(algorithm) }), claims)
    }

    /// A token with this header, whatever it says of the signature.
    pub fn signed_with(&self, algorithm: JwtAlgorithm, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = self.sign(algorithm, signed.as_bytes());
        format!("{signed}.{}", encode(signature))
    }

    pub fn kid(&self, algorithm: JwtAlgorithm) -> String {
        format!("{}-{}", self.name, algorithm.name())
    }

    /// The public keys: a JSON Web Key Set.
    pub fn jwks(&self) -> String {
        // RSAPublicKey of 2048 bits, DER: a sequence of the modulus (a zero and 256 bytes) and the exponent (3 bytes).
        let rsa = rsa().public_key().as_ref();
        let point = self.p256.public_key().as_ref();
        json!({ "keys": [
            { "kty": "RSA", "kid": self.kid(JwtAlgorithm::Rs256), "n": encode(&rsa[9..265]), "e": encode(&rsa[267..]) },
            { "kty": "EC", "kid": self.kid(JwtAlgorithm::Es256), "crv": "P-256", "x": encode(&point[1..33]),
              "y": encode(&point[33..]) },
            { "kty": "OKP", "kid": self.kid(JwtAlgorithm::EdDsa), "crv": "Ed25519",
              "x": encode(self.ed25519.public_key().as_ref()) },
        ] })
        .to_string()
    }

    /// The public keys as bytes, which attackers take for shared secrets.
    pub fn public_keys(&self) -> [Vec<u8>; 3] {
        [rsa().public_key().as_ref(), self.p256.public_key().as_ref(), self.ed25519.public_key().as_ref()]
            .map(<[u8]>::to_vec)
    }

    fn sign(&self, algorithm: JwtAlgorithm, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match algorithm {
            JwtAlgorithm::Hs256 => hs256(SECRET, message),
            JwtAlgorithm::Rs256 => {
                let mut signature = vec![0; rsa().public_modulus_len()];
                rsa().sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
            JwtAlgorithm::Es256 => self.p256.sign(&random, message).unwrap().as_ref().to_vec(),
            JwtAlgorithm::EdDsa => self.ed25519.sign(message).as_ref().to_vec(),
            other => panic!("{} is not signed here", other.name()),
        }
    }
}

/// What a token of this user says.
pub fn claims(user: &str) -> Value {
    json!({ "sub": user, "iss": "https://login.example.com", "aud": "api", "exp": NOW + 3600 })
}

/// An HS256 token under any secret.
pub fn hs256_token(secret: &[u8], header: &Value, claims: &Value) -> String {
    let signed = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
    let signature = hs256(secret, signed.as_bytes());
    format!("{signed}.{}", encode(signature))
}

fn hs256(secret: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message).as_ref().to_vec()
}

/// As the parts of a token are written.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The field that shows a token.
pub fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}
