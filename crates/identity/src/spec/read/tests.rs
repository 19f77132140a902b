//! A whole section, its defaults, and the place of every mistake.

use tollgate_core::Span;
use tollgate_rules::read::FieldPath;
use tollgate_rules::yaml;

use super::*;
use crate::{
    BasicSpec, CertificateName, CertificateSpec, ClaimSpec, CredentialSource, JwtAlgorithm, JwtKeySpec, JwtSpec,
};

/// A problem's code, line and column.
type Place = (&'static str, u32, u32);

fn read(text: &str) -> (IdentitySpec, Vec<Place>) {
    let mut problems = Problems::default();
    let root = yaml::parse(text).unwrap();
    let root = FieldValue { node: &root, path: FieldPath::Root("file") };
    const FIELDS: &[&str] = &IdentitySpec::FIELDS;
    let fields = root.fields(FIELDS, "identity: [ ... ]", &mut problems);
    let spec = IdentitySpec::read(&fields, &mut problems);
    let (problems, _) = problems.into_parts();
    (spec, problems.iter().map(|problem| (problem.code, problem.line, problem.column)).collect())
}

fn valid(text: &str) -> IdentitySpec {
    let (spec, problems) = read(text);
    assert_eq!(problems, [], "{text}");
    spec
}

#[test]
fn reads_a_whole_section() {
    let spec = valid(
        "identity:\n  - jwt: { jwks_url: https://login.example.com/keys, refresh: 5m, issuer: me, audience: [a, b], \
         algorithms: [RS256, ES256], leeway: 10s, claims: { org: org, tier: plan_tier } }\n  - api_key: { query: key }\n  \
         - basic: { file: users.txt }\n  - certificate: { san: uri }\ntrusted_proxies: [10.0.0.0/8, \
         \"::1\"]\ntrusted_hops: 2\nforwarded: forwarded\non_unknown: refuse\n",
    );
    let claim = |attribute: &str, claim: &str| ClaimSpec { attribute: attribute.to_owned(), claim: claim.to_owned() };
    let keys = JwtKeySpec::JwksUrl { url: "https://login.example.com/keys".to_owned(), refresh: Span::from_secs(300) };
    let jwt = JwtSpec {
        source: CredentialSource::Header(http::header::AUTHORIZATION),
        keys,
        algorithms: vec![JwtAlgorithm::Rs256, JwtAlgorithm::Es256],
        issuers: vec!["me".to_owned()],
        audiences: vec!["a".to_owned(), "b".to_owned()],
        leeway: Span::from_secs(10),
        claims: vec![claim("org", "org"), claim("tier", "plan_tier"), claim("user_id", "sub")],
    };
    let key = crate::ApiKeySpec { source: CredentialSource::Query("key".to_owned()), file: None };
    let basic = BasicSpec { file: "users.txt".to_owned() };
    let expected = [
        ProofSpec::Jwt(jwt),
        ProofSpec::ApiKey(key),
        ProofSpec::Basic(basic),
        ProofSpec::Certificate(CertificateSpec { name: CertificateName::Uri }),
    ];
    assert_eq!(spec.proofs, expected);
    assert_eq!((spec.trust.proxies.len(), spec.trust.hops), (2, 2));
    assert_eq!(spec.trust.header, ForwardedHeader::Forwarded);
    assert_eq!((spec.on_unknown, spec.on_missing), (OnUnproven::Refuse, OnUnproven::Address));
}

#[test]
fn nothing_configured_is_a_key_in_x_api_key_and_no_trusted_proxy() {
    assert_eq!(valid("{}"), IdentitySpec::default());
    assert_eq!(valid("identity: []").proofs, []);
}

#[test]
fn every_mistake_has_its_place() {
    let cases: [(&str, &[Place]); 16] = [
        ("identity: [{ apikey: { header: x } }]", &[("unknown-field", 1, 14), ("out-of-range", 1, 12)]),
        ("identity: [{ api_key: { header: x, query: y } }]", &[("out-of-range", 1, 23)]),
        ("identity: [{ api_key: { header: content-length } }]", &[("bad-header", 1, 33)]),
        ("identity: [{ api_key: { cookie: \"a=b\" } }]", &[("bad-name", 1, 33)]),
        ("identity: [{ jwt: { jwks_file: a } }]", &[("missing-field", 1, 19)]),
        ("identity: [{ jwt: { algorithms: RS256 } }]", &[("out-of-range", 1, 19)]),
        ("identity: [{ jwt: { jwks_file: a, algorithms: [none] } }]", &[("unknown-value", 1, 48)]),
        ("identity: [{ jwt: { jwks_file: a, algorithms: [] } }]", &[("out-of-range", 1, 47)]),
        ("identity: [{ jwt: { jwks_file: a, algorithms: [HS256, RS256] } }]", &[("wrong-algorithm", 1, 47)]),
        ("identity: [{ jwt: { key_file: a, algorithms: HS256 } }]", &[("wrong-algorithm", 1, 46)]),
        ("identity: [{ jwt: { secret_file: a, algorithms: RS256 } }]", &[("wrong-algorithm", 1, 49)]),
        ("identity: [{ jwt: { jwks_url: http://example.com, algorithms: RS256 } }]", &[("bad-url", 1, 31)]),
        ("identity: [{ jwt: { jwks_file: a, algorithms: RS256, claims: { ip: ip } } }]", &[("bad-attribute", 1, 64)]),
        ("trusted_proxies: [10.0.0.1/8]", &[("bad-network", 1, 19)]),
        ("trusted_hops: 2", &[("unused-field", 1, 15)]),
        ("on_unknown: deny", &[("unknown-value", 1, 13)]),
    ];
    for (text, expected) in cases {
        let problems = read(text).1;
        assert_eq!(problems, expected, "{text}");
    }
}

#[test]
fn keys_are_fetched_with_tls_or_from_this_machine() {
    let problems = |url: &str| read(&format!("identity: [{{ jwt: {{ jwks_url: \"{url}\", algorithms: RS256 }} }}]")).1;
    for good in ["https://a.example/keys", "http://127.0.0.1:8080/k", "http://[::1]:80/", "http://localhost/"] {
        assert_eq!(problems(good), [], "{good}");
    }
    for bad in
        ["http://localhost@evil.example/", "http://localhost.evil/", "https://", "file:///etc/passwd", "https://a b"]
    {
        assert_eq!(problems(bad).len(), 1, "{bad}");
    }
}
