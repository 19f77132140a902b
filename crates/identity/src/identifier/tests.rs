//! Callers proven and not: ranks, failures, addresses, throttled guesses (RELIABILITY I11 to I13 and I19).

use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue};
use tollgate_core::{ManualClock, Span, Time};
use tollgate_rules::problem::Problems;
use tollgate_rules::read::{FieldPath, FieldValue};
use tollgate_rules::yaml;

use super::*;
use crate::{DirectoryKey, KeyDigest, ProofKind};

const NOW: Time = Time::from_secs(1_800_000_000);

/// A directory of a few keys.
struct Keys(Vec<DirectoryKey>);

impl KeyDirectory for Keys {
    fn find(&self, digest: &KeyDigest) -> Option<DirectoryKey> {
        self.0.iter().find(|key| key.digest == *digest).cloned()
    }
}

fn key(secret: &str, client_key: &str) -> DirectoryKey {
    let identity = ProvenIdentity {
        api_key: Some(format!("id-of-{client_key}")),
        ..ProvenIdentity::new(ProofKind::ApiKey, client_key)
    };
    let digest = KeyDigest::of(secret);
    DirectoryKey { namespace: None, digest, expires_at: None, is_revoked: false, identity: Arc::new(identity) }
}

struct Setup {
    identifier: Identifier,
    clock: ManualClock,
    folder: tempfile::TempDir,
}

fn setup(config: &str, keys: Vec<DirectoryKey>, throttle: Option<Arc<dyn AttemptThrottle>>) -> Setup {
    let folder = tempfile::tempdir().unwrap();
    // The password is `abc`.
    let users = "ann:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n";
    std::fs::write(folder.path().join("users.txt"), users).unwrap();
    std::fs::write(folder.path().join("secret"), "0123456789abcdef0123456789abcdef").unwrap();
    let root = yaml::parse(config).unwrap();
    let mut problems = Problems::default();
    const FIELDS: &[&str] = &IdentitySpec::FIELDS;
    let root = FieldValue { node: &root, path: FieldPath::Root("file") };
    let spec = IdentitySpec::read(&root.fields(FIELDS, "", &mut problems), &mut problems);
    assert!(problems.is_empty(), "{problems:?}");
    let clock = ManualClock::at(NOW);
    let context =
        IdentityContext { folder: folder.path(), keys: Arc::new(Keys(keys)), clock: Arc::new(clock.clone()), throttle };
    Setup { identifier: Identifier::load(&spec, context).unwrap(), clock, folder }
}

impl Setup {
    fn identify(&self, peer: &str, fields: &[(&str, &str)]) -> Result<CallerIdentity, Unauthenticated> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        let peer = Some(peer.parse().unwrap());
        self.identifier.identify(&Evidence {
            namespace: "default",
            headers: &headers,
            query: None,
            peer,
            certificate: None,
        })
    }

    fn client_key(&self, peer: &str, fields: &[(&str, &str)]) -> String {
        self.identify(peer, fields).unwrap().client_key().to_owned()
    }
}

#[test]
fn a_known_key_is_its_client_until_it_expires() {
    let keys = vec![
        DirectoryKey { expires_at: Some(NOW.after(Span::from_secs(10))), ..key("k1", "user:42") },
        DirectoryKey { is_revoked: true, ..key("k2", "user:43") },
        DirectoryKey { namespace: Some("shop".into()), ..key("k3", "user:44") },
    ];
    let setup = setup("{}", keys, None);
    let caller = setup.identify("192.0.2.1", &[("x-api-key", "k1")]).unwrap();
    assert_eq!((caller.client_key(), caller.api_key()), ("user:42", Some("id-of-user:42")));
    assert_eq!((caller.proof(), caller.ip()), (ProofKind::ApiKey, Some("192.0.2.1")));
    setup.clock.advance(Span::from_secs(10));
    for (key, failure) in [
        ("k1", CredentialFailure::Expired),
        ("k2", CredentialFailure::Revoked),
        ("k3", CredentialFailure::UnknownKey),
        ("k4", CredentialFailure::UnknownKey),
    ] {
        let caller = setup.identify("192.0.2.1", &[("x-api-key", key)]).unwrap();
        assert_eq!((caller.client_key(), caller.failure()), ("ip:192.0.2.1", Some(failure)), "{key}");
        assert!(!caller.is_verified() && caller.api_key().is_none());
    }
}

#[test]
fn i11_i12_i19_inventing_keys_gains_no_bucket() {
    let setup = setup("{}", vec![key("k1", "user:42")], None);
    let long = "x".repeat(10 << 20);
    for invented in ["x", "*", "[a-z]", "../../etc/passwd", "%s%n", "${jndi:ldap://x}", "{tag}", "k1 k1", "", &long] {
        assert_eq!(setup.client_key("192.0.2.1", &[("x-api-key", invented)]), "ip:192.0.2.1");
    }
    assert_eq!(setup.client_key("192.0.2.1", &[("x-api-key", "k1"), ("x-api-key", "k1")]), "ip:192.0.2.1");
    assert_eq!(setup.client_key("192.0.2.1", &[("x-api-key", " k1 ")]), "user:42");
    for number in 0..100 {
        let token = format!("Bearer {number}");
        assert_eq!(setup.client_key("192.0.2.1", &[("authorization", &token)]), "ip:192.0.2.1");
    }
}

#[test]
fn i13_attributes_from_outside_are_ignored() {
    let setup = setup("{}", Vec::new(), None);
    let fields = [("x-user-id", "victim"), ("x-org", "acme"), ("x-tier", "gold"), ("x-forwarded-for", "1.2.3.4")];
    let caller = setup.identify("192.0.2.1", &fields).unwrap();
    assert_eq!(
        (caller.client_key(), caller.user_id(), caller.org(), caller.tier()),
        ("ip:192.0.2.1", None, None, None)
    );
}

#[test]
fn the_address_is_that_behind_the_trusted_proxies_and_v4_is_unmapped() {
    let setup = setup("{ trusted_proxies: [10.0.0.0/8], identity: [] }", Vec::new(), None);
    let forwarded = [("x-forwarded-for", "9.9.9.9, 8.8.8.8"), ("forwarded", "for=7.7.7.7")];
    assert_eq!(setup.client_key("10.0.0.1", &forwarded), "ip:8.8.8.8");
    assert_eq!(setup.client_key("::ffff:10.0.0.1", &forwarded), "ip:8.8.8.8");
    assert_eq!(setup.client_key("192.0.2.1", &forwarded), "ip:192.0.2.1");
    assert_eq!(setup.client_key("::ffff:192.0.2.1", &[]), "ip:192.0.2.1");
}

#[test]
fn the_first_proof_that_holds_counts() {
    let config = "identity: [{ jwt: { secret_file: secret, algorithms: HS256 } }, { api_key: { header: x-api-key } }, { \
                  basic: { file: users.txt } }]\n";
    let setup = setup(config, vec![key("k1", "user:42")], None);
    let basic = ("authorization", "Basic YW5uOmFiYw==");
    let forged = ("authorization", "Bearer eyJhbGciOiJIUzI1NiJ9.e30.AAAA");
    assert_eq!(setup.client_key("192.0.2.1", &[basic]), "user:ann");
    assert_eq!(setup.client_key("192.0.2.1", &[basic, ("x-api-key", "k1")]), "user:42", "ranked higher");
    assert_eq!(setup.client_key("192.0.2.1", &[forged, ("x-api-key", "k1")]), "user:42", "the token proves nothing");
    let caller = setup.identify("192.0.2.1", &[forged, ("x-api-key", "k2")]).unwrap();
    assert_eq!(caller.failure(), Some(CredentialFailure::BadSignature), "the failure of the strongest proof");
}

#[test]
fn who_proves_nothing_may_be_refused() {
    let strict = setup("{ on_unknown: refuse }", Vec::new(), None);
    assert_eq!(strict.client_key("192.0.2.1", &[]), "ip:192.0.2.1");
    let refused = strict.identify("192.0.2.1", &[("x-api-key", "k2")]).unwrap_err();
    assert_eq!(refused.failure, Some(CredentialFailure::UnknownKey));
    assert_eq!(refused.challenges, ["ApiKey realm=\"api\""]);
    assert_eq!(refused.message(), "the credential is not valid");
    let closed = setup("{ on_missing: refuse, identity: [{ basic: { file: users.txt } }] }", Vec::new(), None);
    let refused = closed.identify("192.0.2.1", &[]).unwrap_err();
    assert_eq!((refused.failure, refused.challenges.len()), (None, 1));
}

/// Lets three attempts fail, whatever the address.
#[derive(Default)]
struct ThreeAttempts(AtomicUsize);

impl AttemptThrottle for ThreeAttempts {
    fn may_try(&self, _: Option<IpAddr>) -> bool {
        self.0.load(Ordering::SeqCst) < 3
    }

    fn note_failure(&self, _: Option<IpAddr>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn guessing_is_throttled_before_the_secret_is_checked() {
    let throttle = Arc::new(ThreeAttempts::default());
    let config = "identity: [{ basic: { file: users.txt } }]";
    let setup = setup(config, Vec::new(), Some(throttle.clone()));
    let (right, wrong) = (("authorization", "Basic YW5uOmFiYw=="), ("authorization", "Basic YW5uOmFiZA=="));
    assert_eq!(setup.client_key("192.0.2.1", &[right]), "user:ann");
    for _ in 0..3 {
        let failure = setup.identify("192.0.2.1", &[wrong]).unwrap().failure();
        assert_eq!(failure, Some(CredentialFailure::WrongPassword));
    }
    let caller = setup.identify("192.0.2.1", &[right]).unwrap();
    assert_eq!((caller.failure(), caller.is_verified()), (Some(CredentialFailure::Throttled), false));
    assert_eq!(throttle.0.load(Ordering::SeqCst), 3, "what was not checked did not fail");
}

#[test]
fn a_file_that_is_missing_is_named() {
    let setup = setup("{}", Vec::new(), None);
    let spec = IdentitySpec {
        proofs: vec![ProofSpec::Basic(crate::BasicSpec { file: "nowhere.txt".to_owned() })],
        ..IdentitySpec::default()
    };
    let context = IdentityContext {
        folder: setup.folder.path(),
        keys: Arc::new(crate::NoKeys),
        clock: Arc::new(setup.clock.clone()),
        throttle: None,
    };
    let error = Identifier::load(&spec, context).unwrap_err().to_string();
    assert!(error.starts_with("cannot read ") && error.contains("nowhere.txt"), "{error}");
    assert_eq!(spec.files(setup.folder.path()), [setup.folder.path().join("nowhere.txt")]);
}
