//! Signed tokens with keys of files: what proves a user, and what leaves the caller in the bucket of its address
//! (RELIABILITY I12–I14).

use serde_json::{Value, json};
use tollgate_core::Span;
use tollgate_identity::JwtAlgorithm::{self, EdDsa, Es256, Hs256, Rs256};

use crate::callers::{IdentityRig, left};
use crate::issuer::{Issuer, NOW, SECRET, bearer, claims, encode, hs256_token};
use crate::rig::until;

/// Public keys in one entry, a shared secret in another: they are never mixed.
const IDENTITY: &str = "identity:
  - jwt: { jwks_file: keys.json, algorithms: [RS256, ES256, EdDSA], issuer: https://login.example.com, audience: api,
           leeway: 30s, claims: { user_id: sub, org: org, tier: /plan/tier } }
  - jwt: { secret_file: secret.txt, algorithms: [HS256], issuer: https://login.example.com, audience: api }
";
const ALL: [JwtAlgorithm; 4] = [Hs256, Rs256, Es256, EdDsa];

async fn start(issuer: &Issuer) -> IdentityRig {
    IdentityRig::start(IDENTITY, &[("keys.json", issuer.jwks().as_bytes()), ("secret.txt", SECRET)]).await
}

/// The claims of a user, with one of them changed; null removes it.
fn claims_with(user: &str, name: &str, value: Value) -> Value {
    let mut claims = claims(user);
    match value {
        Value::Null => _ = claims.as_object_mut().unwrap().remove(name),
        value => claims[name] = value,
    }
    claims
}

#[tokio::test]
async fn a_token_of_every_kind_is_its_user_wherever_it_comes_from() {
    let issuer = Issuer::new("one");
    let id = start(&issuer).await;
    for (user, algorithm) in ALL.into_iter().enumerate() {
        let fields = bearer(&issuer.token(algorithm, &format!("user-{user}")));
        assert!(id.is_own(&fields).await, "{}", algorithm.name());
        let here = id.left(&fields).await;
        let elsewhere = left(&mut id.rig.connect_from([127, 0, 0, 2]).await, &fields).await;
        assert_eq!(elsewhere, here - 1, "{}: one user, one bucket", algorithm.name());
    }
    let [one, other] = [Es256, EdDsa].map(|algorithm| bearer(&issuer.token(algorithm, "the-same")));
    assert_eq!(id.left(&one).await - 1, id.left(&other).await, "two tokens of one user");
    let seen = id.app.seen().concat();
    assert!(seen.contains("authorization: Bearer "), "the server gets the token as it was sent: {seen}");
}

#[tokio::test]
async fn i13_claims_become_attributes_and_what_a_caller_says_of_itself_does_not() {
    let issuer = Issuer::new("one");
    let rules = "rules:
  - { name: gold, match: { tier: gold, org: acme }, key_by: user_id, limit: { requests: 9, window: 1h } }
  - { name: rest, key_by: client_key, limit: { requests: 9, window: 1h } }
";
    let keys = issuer.jwks();
    let files = [("keys.json", keys.as_bytes()), ("secret.txt", SECRET)];
    let id = IdentityRig::with(rules, IDENTITY, &files, |_| {}).await;
    let policies =
        async |fields: &str| id.rig.get_with("/x", fields).await.field("RateLimit-Policy").unwrap().to_owned();
    let mut gold = claims("1");
    (gold["org"], gold["plan"]) = ("acme".into(), json!({ "tier": "gold" }));
    assert!(policies(&bearer(&issuer.signed(EdDsa, &gold))).await.contains("\"gold\""));
    let plain = bearer(&issuer.token(EdDsa, "2"));
    for claimed in ["X-Tier: gold\r\nX-Org: acme\r\n", "Tier: gold\r\nOrg: acme\r\nX-User-ID: 1\r\n", ""] {
        assert!(!policies(&format!("{plain}{claimed}")).await.contains("gold"), "{claimed}");
        assert!(!policies(claimed).await.contains("gold"), "{claimed}");
    }
}

/// None of these may have a bucket of its own: with one, a caller makes as many as it likes.
#[tokio::test]
async fn i12_i14_a_token_that_proves_nothing_counts_at_its_address() {
    let (issuer, other) = (Issuer::new("one"), Issuer::new("one"));
    let id = start(&issuer).await;
    let good = issuer.token(EdDsa, "good");
    let [head, payload, signature]: [&str; 3] = good.split('.').collect::<Vec<_>>().try_into().unwrap();
    let header = |alg: &str| json!({ "alg": alg, "kid": issuer.kid(Es256) });
    let raw =
        |header: Value, user: &str| format!("{}.{}", encode(header.to_string()), encode(claims(user).to_string()));
    let mut tokens = vec![
        ("random", "abc.def.ghi".to_owned()),
        ("another issuer's key", other.token(Es256, "a")),
        ("another payload", format!("{head}.{}.{signature}", encode(claims("b").to_string()))),
        ("no signature", format!("{head}.{payload}.")),
        ("half a signature", format!("{head}.{payload}.{}", &signature[..40])),
        ("padding", format!("{good}==")),
        ("none", format!("{}.", raw(json!({ "alg": "none" }), "c"))),
        ("None with a signature", format!("{}.{signature}", raw(json!({ "alg": "None" }), "d"))),
        ("no algorithm", format!("{}.{signature}", raw(json!({ "typ": "JWT" }), "e"))),
        ("an algorithm that is not pinned", issuer.signed_with(Rs256, &header("RS384"), &claims("f"))),
        ("the name of another algorithm", issuer.signed_with(Es256, &header("EdDSA"), &claims("g"))),
        ("an unknown key", issuer.signed_with(Es256, &json!({ "alg": "ES256", "kid": "new" }), &claims("h"))),
        (
            "a key of its own",
            issuer.signed_with(Es256, &json!({ "alg": "ES256", "kid": "x", "jwk": {} }), &claims("i")),
        ),
        ("a critical extension", issuer.signed_with(Es256, &json!({ "alg": "ES256", "crit": ["b64"] }), &claims("j"))),
    ];
    for (name, value) in [
        ("aud", json!("another")),
        ("aud", json!(["another", "third"])),
        ("aud", Value::Null),
        ("iss", json!("https://evil.example.com")),
        ("iss", Value::Null),
        ("exp", json!(NOW - 31)),
        ("exp", json!("tomorrow")),
        ("exp", Value::Null),
        ("nbf", json!(NOW + 31)),
        ("sub", Value::Null),
        ("sub", json!({ "id": 1 })),
        ("sub", json!("")),
        ("org", json!("x".repeat(2000))),
    ] {
        for algorithm in [EdDsa, Hs256].into_iter().filter(|algorithm| name != "org" || *algorithm == EdDsa) {
            tokens.push((
                name,
                issuer.signed(algorithm, &claims_with(&format!("user-{}", tokens.len()), name, value.clone())),
            ));
        }
    }
    // The public key as a shared secret, under every name that could lead there.
    for (secret, kid) in issuer.public_keys().into_iter().zip([Rs256, Es256, EdDsa]) {
        tokens.push((
            "confusion",
            hs256_token(&secret, &json!({ "alg": "HS256", "kid": issuer.kid(kid) }), &claims("m")),
        ));
    }
    for (why, token) in &tokens {
        assert!(!id.is_own(&bearer(token)).await, "{why}: {token}");
    }
    let twice = format!("{}{}", bearer(&good), bearer(&good));
    assert!(!id.is_own(&twice).await, "two tokens: a server may read the other one");
    assert!(!id.is_own(&format!("Authorization: Basic {good}\r\n")).await);
    assert!(id.is_own(&bearer(&good)).await, "the good one is still one");
}

#[tokio::test]
async fn a_token_begins_and_ends_with_its_dates_also_when_it_was_verified_before() {
    let issuer = Issuer::new("one");
    let id = start(&issuer).await;
    let early = bearer(&issuer.signed(EdDsa, &claims_with("a", "nbf", (NOW + 100).into())));
    let short = bearer(&issuer.signed(Hs256, &claims_with("b", "exp", (NOW + 100).into())));
    assert!(!id.is_own(&early).await && id.is_own(&short).await);
    id.clock.advance(Span::from_secs(69));
    assert!(!id.is_own(&early).await, "clocks may differ by 30 s, and not by more");
    id.clock.advance(Span::from_secs(1));
    assert!(id.is_own(&early).await);
    id.clock.advance(Span::from_secs(59));
    assert!(id.is_own(&short).await, "29 s after it ended");
    id.clock.advance(Span::from_secs(1));
    assert!(!id.is_own(&short).await, "although it was verified a moment ago");
}

/// Signatures cost the most to check: an address that sends forged ones has to wait, and no other address.
#[tokio::test]
async fn a_flood_of_forged_tokens_is_not_verified_for_long_and_locks_out_no_other() {
    let (issuer, forger) = (Issuer::new("one"), Issuer::new("one"));
    let id = start(&issuer).await;
    let known = bearer(&issuer.token(EdDsa, "known"));
    assert!(id.is_own(&known).await);
    for forged in 0..40 {
        id.left(&bearer(&forger.token(EdDsa, &format!("forged-{forged}")))).await;
    }
    let fresh = bearer(&issuer.token(EdDsa, "fresh"));
    assert!(!id.is_own(&fresh).await, "this address has to wait");
    assert!(id.is_own(&known).await, "what was verified is remembered");
    let mut elsewhere = id.rig.connect_from([127, 0, 0, 2]).await;
    assert_eq!(left(&mut elsewhere, &fresh).await, 999_999, "its own bucket");
    assert!(id.is_own(&fresh).await, "which was verified there");
    let next = bearer(&issuer.token(EdDsa, "next"));
    assert!(!id.is_own(&next).await);
    id.clock.advance(Span::from_secs(60));
    assert!(id.is_own(&next).await, "a minute later it is checked again");
}

/// A key set or a secret that is replaced: what the old keys verified is verified again, by the new ones.
#[tokio::test]
async fn a_key_file_that_changes_is_in_force_soon_and_forgets_what_it_verified() {
    let (old, new) = (Issuer::new("old"), Issuer::new("new"));
    let id = start(&old).await;
    let [before, after] = [&old, &new].map(|issuer| bearer(&issuer.token(Es256, "42")));
    assert!(id.is_own(&before).await && !id.is_own(&after).await);
    let file = id.rig.dir.path().join("keys.json");
    std::fs::write(&file, new.jwks()).unwrap();
    until(async || id.is_own(&after).await).await;
    assert!(!id.is_own(&before).await, "the old key is gone, and so is what it verified");
}

#[tokio::test]
async fn a_token_is_found_where_the_entry_says_and_nowhere_else() {
    let issuer = Issuer::new("one");
    let keys = issuer.jwks();
    for (place, path, fields) in [
        ("query: token", "/x?token={}", ""),
        ("cookie: session", "/x", "Cookie: a=1; session={}; b=2\r\n"),
        ("header: x-token", "/x", "X-Token: {}\r\n"),
    ] {
        let entry = "jwks_file: keys.json, algorithms: EdDSA, audience: api";
        let identity = format!("identity: [{{ jwt: {{ {entry}, {place} }} }}]");
        let id = IdentityRig::start(&identity, &[("keys.json", keys.as_bytes())]).await;
        let token = issuer.token(EdDsa, "42");
        let (path, fields) = (path.replace("{}", &token), fields.replace("{}", &token));
        let left = async |path: &str, fields: &str| -> u64 {
            let answer = id.rig.get_with(path, fields).await;
            answer.field("X-RateLimit-Remaining").unwrap().parse().unwrap()
        };
        let address = left("/x", "").await;
        assert_eq!(left("/x", &bearer(&token)).await, address - 1, "{place}: it is no bearer token");
        assert_eq!(left(&path, &fields).await, 999_999, "{place}");
        assert_eq!(left("/x", "").await, address - 2, "{place}: the address was not charged for it");
    }
}
