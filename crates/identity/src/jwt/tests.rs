//! Tokens of an issuer with keys of every kind: good, forged, confused, expired, huge (RELIABILITY I14).

mod refresh;

use std::sync::Arc;

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding,
};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tollgate_core::{Span, Time};

use super::verifier::JwtVerifier;
use super::{KeySet, SharedSecrets};
use crate::{ClaimSpec, CredentialFailure, CredentialSource, JwtAlgorithm, JwtKeySpec, JwtSpec, ProvenIdentity};

const NOW: Time = Time::from_secs(1_800_000_000);
const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Keys of an issuer, of every kind.
struct Issuer {
    rsa: RsaKeyPair,
    p256: EcdsaKeyPair,
    p384: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
    random: SystemRandom,
}

impl Issuer {
    fn new() -> Issuer {
        Issuer {
            rsa: RsaKeyPair::generate(KeySize::Rsa2048).unwrap(),
            p256: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap(),
            p384: EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap(),
            ed25519: Ed25519KeyPair::generate().unwrap(),
            random: SystemRandom::new(),
        }
    }

    fn sign(&self, algorithm: JwtAlgorithm, message: &[u8]) -> Vec<u8> {
        let rsa = |encoding: &'static dyn RsaEncoding| {
            let mut signature = vec![0; self.rsa.public_modulus_len()];
            self.rsa.sign(encoding, &self.random, message, &mut signature).unwrap();
            signature
        };
        let hmac = |hash| hmac::sign(&hmac::Key::new(hash, SECRET), message).as_ref().to_vec();
        match algorithm {
            JwtAlgorithm::Hs256 => hmac(hmac::HMAC_SHA256),
            JwtAlgorithm::Hs384 => hmac(hmac::HMAC_SHA384),
            JwtAlgorithm::Hs512 => hmac(hmac::HMAC_SHA512),
            JwtAlgorithm::Rs256 => rsa(&RSA_PKCS1_SHA256),
            JwtAlgorithm::Rs384 => rsa(&RSA_PKCS1_SHA384),
            JwtAlgorithm::Rs512 => rsa(&RSA_PKCS1_SHA512),
            JwtAlgorithm::Ps256 => rsa(&RSA_PSS_SHA256),
            JwtAlgorithm::Ps384 => rsa(&RSA_PSS_SHA384),
            JwtAlgorithm::Ps512 => rsa(&RSA_PSS_SHA512),
            JwtAlgorithm::Es256 => self.p256.sign(&self.random, message).unwrap().as_ref().to_vec(),
            JwtAlgorithm::Es384 => self.p384.sign(&self.random, message).unwrap().as_ref().to_vec(),
            JwtAlgorithm::EdDsa => self.ed25519.sign(message).as_ref().to_vec(),
        }
    }

    fn token(&self, algorithm: JwtAlgorithm, claims: &Value) -> String {
        self.token_with(algorithm, &json!({ "alg": algorithm.name(), "kid": kid(algorithm) }), claims)
    }

    fn token_with(&self, algorithm: JwtAlgorithm, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = encode(self.sign(algorithm, signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    fn jwks(&self) -> Value {
        // RSAPublicKey of 2048 bits, DER: a sequence of the modulus (a zero and 256 bytes) and the exponent (3 bytes).
        let rsa = self.rsa.public_key().as_ref();
        let point = |point: &[u8], width: usize| (encode(&point[1..=width]), encode(&point[1 + width..]));
        let (x, y) = point(self.p256.public_key().as_ref(), 32);
        let (x384, y384) = point(self.p384.public_key().as_ref(), 48);
        json!({ "keys": [
            { "kty": "RSA", "kid": "rsa", "n": encode(&rsa[8..265]),
              "e": encode(&rsa[267..]), "use": "sig" },
            { "kty": "EC", "kid": "p256", "crv": "P-256", "x": x, "y": y, "alg": "ES256" },
            { "kty": "EC", "kid": "p384", "crv": "P-384", "x": x384, "y": y384, "key_ops": ["verify"] },
            { "kty": "OKP", "kid": "ed", "crv": "Ed25519", "x": encode(self.ed25519.public_key().as_ref()) },
            { "kty": "oct", "kid": "secret", "k": encode(SECRET) },
            { "kty": "unheard-of", "kid": "new" },
        ] })
    }
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn kid(algorithm: JwtAlgorithm) -> &'static str {
    match algorithm {
        JwtAlgorithm::Hs256 | JwtAlgorithm::Hs384 | JwtAlgorithm::Hs512 => "secret",
        JwtAlgorithm::Es256 => "p256",
        JwtAlgorithm::Es384 => "p384",
        JwtAlgorithm::EdDsa => "ed",
        _ => "rsa",
    }
}

fn all() -> Vec<JwtAlgorithm> {
    JwtAlgorithm::NAMES.iter().map(|(_, algorithm)| *algorithm).collect()
}

fn spec(keys: JwtKeySpec, algorithms: &[JwtAlgorithm]) -> JwtSpec {
    let claim = |attribute: &str, claim: &str| ClaimSpec { attribute: attribute.to_owned(), claim: claim.to_owned() };
    JwtSpec {
        source: CredentialSource::Header(http::header::AUTHORIZATION),
        keys,
        algorithms: algorithms.to_vec(),
        issuers: vec!["https://login.example.com".to_owned()],
        audiences: vec!["api".to_owned()],
        leeway: Span::from_secs(30),
        claims: vec![
            claim("user_id", "sub"),
            claim("org", "org"),
            claim("tier", "/https:~1~1example.com~1plan/tier"),
            claim("plan", "plan"),
            claim("seats", "seats"),
        ],
    }
}

fn claims() -> Value {
    json!({
        "sub": "42", "iss": "https://login.example.com", "aud": ["other", "api"], "exp": 1_800_000_060,
        "nbf": 1_799_999_999.5, "org": "acme", "plan": "paid", "seats": 7,
        "https://example.com/plan": { "tier": "gold" },
    })
}

/// A verifier whose key file holds `text`.
fn verifier(keys: fn(String) -> JwtKeySpec, text: impl AsRef<[u8]>, algorithms: &[JwtAlgorithm]) -> JwtVerifier {
    try_verifier(keys, text, algorithms).unwrap_or_else(|error| panic!("{error}"))
}

fn try_verifier(
    keys: fn(String) -> JwtKeySpec,
    text: impl AsRef<[u8]>,
    algorithms: &[JwtAlgorithm],
) -> Result<JwtVerifier, crate::IdentityError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("keys"), text).unwrap();
    JwtVerifier::load(spec(keys("keys".to_owned()), algorithms), folder.path())
}

fn verify(verifier: &JwtVerifier, token: &str) -> Result<Arc<ProvenIdentity>, CredentialFailure> {
    verify_at(verifier, token, NOW)
}

fn verify_at(verifier: &JwtVerifier, token: &str, now: Time) -> Result<Arc<ProvenIdentity>, CredentialFailure> {
    let mut headers = http::HeaderMap::new();
    headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    let evidence =
        crate::Evidence { namespace: "default", headers: &headers, query: None, peer: None, certificate: None };
    let shown = verifier.find(&evidence)?.expect("it has the form of a token");
    match verifier.recall(&shown, now) {
        Some(identity) => Ok(identity),
        None => verifier.verify(&shown, now),
    }
}

#[test]
fn every_algorithm_verifies_and_a_changed_token_does_not() {
    let issuer = Issuer::new();
    let verifier = verifier(JwtKeySpec::JwksFile, issuer.jwks().to_string(), &all());
    for algorithm in all() {
        let token = issuer.token(algorithm, &claims());
        let identity = verify(&verifier, &token).unwrap_or_else(|failure| panic!("{algorithm:?}: {failure:?}"));
        assert_eq!(identity.client_key, "user:42");
        assert_eq!((identity.org.as_deref(), identity.tier.as_deref()), (Some("acme"), Some("gold")));
        let custom = [("plan", "paid"), ("seats", "7")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(identity.custom, custom);
        let [header, payload, signature] = token.split('.').collect::<Vec<_>>().try_into().unwrap();
        let other = encode(claims().to_string().replace("\"42\"", "\"43\""));
        let forged = verify(&verifier, &format!("{header}.{other}.{signature}"));
        assert_eq!(forged, Err(CredentialFailure::BadSignature), "{algorithm:?}");
        let unsigned = verify(&verifier, &format!("{header}.{payload}."));
        assert_eq!(unsigned, Err(CredentialFailure::BadSignature), "{algorithm:?}");
    }
}

#[test]
fn a_token_cannot_choose_its_algorithm() {
    let issuer = Issuer::new();
    let pinned = verifier(JwtKeySpec::JwksFile, issuer.jwks().to_string(), &[JwtAlgorithm::Rs256]);
    for algorithm in all() {
        let expected = if algorithm == JwtAlgorithm::Rs256 { Ok(()) } else { Err(CredentialFailure::WrongAlgorithm) };
        assert_eq!(verify(&pinned, &issuer.token(algorithm, &claims())).map(drop), expected, "{algorithm:?}");
    }
    for none in ["none", "None", "NONE", "nOnE", "", "rs256", "HS256\0"] {
        let header = json!({ "alg": none, "kid": "rsa" });
        let token = issuer.token_with(JwtAlgorithm::Rs256, &header, &claims());
        assert_eq!(verify(&pinned, &token), Err(CredentialFailure::WrongAlgorithm), "{none}");
        let (signed, _) = token.rsplit_once('.').unwrap();
        assert_eq!(verify(&pinned, &format!("{signed}.")), Err(CredentialFailure::WrongAlgorithm), "{none}");
    }
}

#[test]
fn a_public_key_never_serves_as_a_shared_secret() {
    let issuer = Issuer::new();
    let der = issuer.rsa.public_key().as_der().unwrap();
    let body: Vec<String> = STANDARD
        .encode(der.as_ref())
        .as_bytes()
        .chunks(64)
        .map(|line| String::from_utf8(line.to_vec()).unwrap())
        .collect();
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", body.join("\n"));
    // Even with both pinned, which the reader of the configuration refuses.
    let both = verifier(JwtKeySpec::KeyFile, &pem, &[JwtAlgorithm::Rs256, JwtAlgorithm::Hs256]);
    assert!(verify(&both, &issuer.token(JwtAlgorithm::Rs256, &claims())).is_ok(), "PEM keys have no id");
    for secret in [pem.as_bytes(), pem.trim().as_bytes(), der.as_ref()] {
        let header = json!({ "alg": "HS256" });
        let signed = format!("{}.{}", encode(header.to_string()), encode(claims().to_string()));
        let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
        let token = format!("{signed}.{}", encode(signature.as_ref()));
        assert_eq!(verify(&both, &token), Err(CredentialFailure::UnknownSigningKey));
    }
}

#[test]
fn claims_must_hold() {
    let issuer = Issuer::new();
    let verifier = verifier(JwtKeySpec::SecretFile, SECRET, &[JwtAlgorithm::Hs256]);
    let with = |name: &str, value: Value| {
        let mut claims = claims();
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value,
        }
        verify(&verifier, &issuer.token(JwtAlgorithm::Hs256, &claims)).map(drop)
    };
    use CredentialFailure as Failure;
    let cases = [
        ("exp", json!(1_799_999_971), Ok(())),
        ("exp", json!(1_799_999_970), Err(Failure::Expired)),
        ("exp", json!(1_799_999_970.9), Err(Failure::Expired)),
        ("exp", json!(0), Err(Failure::Expired)),
        ("exp", json!(1e300), Ok(())),
        ("exp", json!(-1), Err(Failure::Malformed)),
        ("exp", json!("1900000000"), Err(Failure::Malformed)),
        ("exp", Value::Null, Err(Failure::MissingClaim)),
        ("nbf", json!(1_800_000_030), Ok(())),
        ("nbf", json!(1_800_000_031), Err(Failure::NotYetValid)),
        ("nbf", Value::Null, Ok(())),
        ("iss", json!("https://login.example.com.evil"), Err(Failure::WrongIssuer)),
        ("iss", json!(["https://login.example.com"]), Err(Failure::WrongIssuer)),
        ("iss", Value::Null, Err(Failure::WrongIssuer)),
        ("aud", json!("api"), Ok(())),
        ("aud", json!("API"), Err(Failure::WrongAudience)),
        ("aud", json!([]), Err(Failure::WrongAudience)),
        ("aud", json!([["api"]]), Err(Failure::WrongAudience)),
        ("aud", Value::Null, Err(Failure::WrongAudience)),
        ("sub", Value::Null, Err(Failure::MissingClaim)),
        ("sub", json!(""), Err(Failure::MissingClaim)),
        ("sub", json!({ "id": 1 }), Err(Failure::Malformed)),
        ("sub", json!("x".repeat(1025)), Err(Failure::TooLong)),
        ("sub", json!(42), Ok(())),
        ("org", Value::Null, Ok(())),
        ("org", json!(["a", "b"]), Err(Failure::Malformed)),
    ];
    for (name, value, expected) in cases {
        let text = value.to_string();
        assert_eq!(with(name, value), expected, "{name}: {}", &text[..text.len().min(60)]);
    }
}

#[test]
fn a_token_for_an_audience_is_refused_where_none_is_configured() {
    let issuer = Issuer::new();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("keys"), SECRET).unwrap();
    let open = JwtSpec {
        audiences: Vec::new(),
        issuers: Vec::new(),
        ..spec(JwtKeySpec::SecretFile("keys".to_owned()), &[JwtAlgorithm::Hs256])
    };
    let verifier = JwtVerifier::load(open, folder.path()).unwrap();
    let token = |claims: Value| issuer.token(JwtAlgorithm::Hs256, &claims);
    assert!(verify(&verifier, &token(json!({ "sub": "42", "exp": 1_900_000_000 }))).is_ok());
    let meant_for_another = token(json!({ "sub": "42", "exp": 1_900_000_000, "aud": "billing" }));
    assert_eq!(verify(&verifier, &meant_for_another), Err(CredentialFailure::WrongAudience));
}

#[test]
fn i14_huge_nested_and_malformed_tokens_are_refused() {
    let issuer = Issuer::new();
    let verifier = verifier(JwtKeySpec::SecretFile, SECRET, &[JwtAlgorithm::Hs256]);
    use CredentialFailure as Failure;
    let hs256 = |header: Value, claims: &Value| issuer.token_with(JwtAlgorithm::Hs256, &header, claims);
    let good = issuer.token(JwtAlgorithm::Hs256, &claims());
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let deep = format!("{}1{}", "[".repeat(4000), "]".repeat(4000));
    let inner = encode(&good);
    let header = encode(json!({ "alg": "HS256", "cty": "JWT" }).to_string());
    let nested = format!("{header}.{inner}");
    let nested = format!("{nested}.{}", encode(issuer.sign(JwtAlgorithm::Hs256, nested.as_bytes())));
    let cases = [
        (format!("{}.{}.{}", "a".repeat(400_000), "b".repeat(400_000), "c".repeat(200_000)), Failure::TooLong),
        (hs256(json!({ "alg": "HS256", "x": "y".repeat(3000) }), &claims()), Failure::TooLong),
        (format!("{signed}.{}", "a".repeat(2000)), Failure::TooLong),
        (format!("{}.e30.", encode(&deep)), Failure::TooLong),
        (format!("{}.e30.", encode(&deep[..1400])), Failure::Malformed),
        (nested, Failure::Malformed),
        ("..".to_owned(), Failure::Malformed),
        ("a.b.c".to_owned(), Failure::Malformed),
        (format!("{}.e30.", encode("[]")), Failure::Malformed),
        (format!("{}.e30.", encode("\"alg\"")), Failure::Malformed),
        (format!("{signed}.{signature}="), Failure::Malformed),
        (format!("{signed}.{}", signature.replace(['-', '_'], "+")), Failure::Malformed),
        (hs256(json!({ "alg": "HS256", "crit": ["b64"], "b64": false }), &claims()), Failure::Malformed),
        (hs256(json!({ "alg": "HS256", "kid": 7 }), &claims()), Failure::Malformed),
        (hs256(json!({ "alg": ["HS256"] }), &claims()), Failure::WrongAlgorithm),
        (hs256(json!({ "kid": "secret" }), &claims()), Failure::WrongAlgorithm),
    ];
    for (token, expected) in cases {
        if token == good {
            continue; // a signature without `-` and `_`
        }
        assert_eq!(verify(&verifier, &token), Err(expected), "{}", &token[..token.len().min(80)]);
    }
    assert!(verify(&verifier, &good).is_ok());
}

#[test]
fn a_token_has_one_spelling() {
    let issuer = Issuer::new();
    let verifier = verifier(JwtKeySpec::SecretFile, SECRET, &[JwtAlgorithm::Hs256]);
    let token = issuer.token(JwtAlgorithm::Hs256, &claims());
    // 32 bytes are 43 characters, of which the last has two spare bits: three more spellings of the same bytes.
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (start, last) = token.split_at(token.len() - 1);
    let index = alphabet.find(last).unwrap();
    for other in &alphabet[index + 1..index + 4].chars().collect::<Vec<_>>() {
        assert_eq!(verify(&verifier, &format!("{start}{other}")), Err(CredentialFailure::Malformed), "{last} {other}");
    }
    assert!(verify(&verifier, &token).is_ok());
}

#[test]
fn a_verified_token_is_remembered_until_it_expires() {
    let issuer = Issuer::new();
    let verifier = verifier(JwtKeySpec::SecretFile, SECRET, &[JwtAlgorithm::Hs256]);
    let token = issuer.token(JwtAlgorithm::Hs256, &claims());
    let first = verify(&verifier, &token).unwrap();
    assert!(Arc::ptr_eq(&first, &verify(&verifier, &token).unwrap()));
    let late = Time::from_secs(1_800_000_090);
    assert_eq!(verify_at(&verifier, &token, late), Err(CredentialFailure::Expired));
}

#[test]
fn keys_that_cannot_be_used_are_refused() {
    let issuer = Issuer::new();
    let refused = |keys: fn(String) -> JwtKeySpec, text: &str, algorithm| {
        try_verifier(keys, text, &[algorithm]).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let cases = [
        (refused(JwtKeySpec::SecretFile, "short", JwtAlgorithm::Hs256), "32 to 1024 bytes"),
        (refused(JwtKeySpec::KeyFile, "no pem", JwtAlgorithm::Rs256), "holds no `PUBLIC KEY`"),
        (refused(JwtKeySpec::JwksFile, "{}", JwtAlgorithm::Rs256), "has no `keys`"),
        (refused(JwtKeySpec::JwksFile, "[", JwtAlgorithm::Rs256), "is not JSON"),
        (refused(JwtKeySpec::JwksFile, "{\"keys\":[]}", JwtAlgorithm::Rs256), "no key for RS256"),
        (refused(JwtKeySpec::JwksFile, &" ".repeat(300_000), JwtAlgorithm::Rs256), "longer than 262144 bytes"),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "{message:?} does not say {expected}");
    }
    let encryption = issuer.jwks().to_string().replace("\"sig\"", "\"enc\"");
    assert!(KeySet::from_jwks(encryption.as_bytes(), &[JwtAlgorithm::Rs256], SharedSecrets::Accepted).is_err());
    let jwks = issuer.jwks().to_string();
    assert!(KeySet::from_jwks(jwks.as_bytes(), &[JwtAlgorithm::Hs256], SharedSecrets::Ignored).is_err());
    let many: Vec<Value> = (0..101).map(|kid| json!({ "kty": "RSA", "kid": kid.to_string() })).collect();
    let many = json!({ "keys": many }).to_string();
    assert!(KeySet::from_jwks(many.as_bytes(), &all(), SharedSecrets::Accepted).is_err());
}

#[test]
fn the_cache_of_verified_tokens_is_bounded() {
    use super::verified_tokens::{VerifiedToken, VerifiedTokens};
    let cache = VerifiedTokens::new(1600);
    let identity = Arc::new(ProvenIdentity::new(crate::ProofKind::Jwt, "user:42"));
    let token = VerifiedToken { identity, expires_at: NOW, keys: 0 };
    for number in 0..20_000 {
        cache.add(crate::KeyDigest::of(&number.to_string()), token.clone());
    }
    assert!(cache.len() <= 1600, "{}", cache.len());
    assert!(cache.get(&crate::KeyDigest::of("19999")).is_some());
    assert!(cache.get(&crate::KeyDigest::of("0")).is_none());
}
