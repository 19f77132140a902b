//! The other proofs of an identity: API keys of a file, passwords, client certificates, and what becomes of a caller
//! that shows none where one is required (RELIABILITY I11).

use std::sync::Arc;

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer as Authority, KeyPair, SanType};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tollgate_core::Span;

use crate::caller::Caller;
use crate::callers::{BY_CLIENT, IdentityRig, left};
use crate::rig::within;

fn sha256(text: &str) -> String {
    digest::digest(&digest::SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn basic(name: &str, password: &str) -> String {
    format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{name}:{password}")))
}

#[tokio::test]
async fn i11_a_key_has_one_spelling_and_a_wrong_one_counts_at_its_address() {
    let keys = format!("keys:\n  - {{ id: mobile, sha256: {}, client_key: \"user:42\" }}\n", sha256("good-key"));
    let identity = "identity: [{ api_key: { header: x-api-key, file: keys.yaml } }]";
    let id = IdentityRig::start(identity, &[("keys.yaml", keys.as_bytes())]).await;
    let good = "X-Api-Key: good-key\r\n";
    assert!(id.is_own(good).await);
    let before = id.left(good).await;
    for same in ["x-api-key:good-key\r\n", "X-API-KEY:   good-key \t\r\n"] {
        assert!(id.is_own(same).await, "{same:?}");
    }
    assert_eq!(id.left(good).await, before - 3, "one key, one bucket");
    let long = format!("X-Api-Key: {}\r\n", "k".repeat(8 << 10));
    for wrong in [
        "X-Api-Key: bad-key\r\n",
        "X-Api-Key: GOOD-KEY\r\n",
        "X-Api-Key: good-key2\r\n",
        "X-Api-Key: \"good-key\"\r\n",
        "X-Api-Key: \u{feff}good-key\r\n",
        "X-Api-Key: good key\r\n",
        "X-Api-Key:\r\n",
        "X-Api-Key: good-key\r\nX-Api-Key: good-key\r\n",
        "X-Api-Key: good-key, good-key\r\n",
        "Authorization: Bearer good-key\r\n",
        "X_Api_Key: good-key\r\n",
        "Cookie: x-api-key=good-key\r\n",
        &long,
    ] {
        assert!(!id.is_own(wrong).await, "{wrong:?}");
    }
}

/// Bytes beyond ASCII in one cookie hide no other cookie, and no field of cookies hides another.
#[tokio::test]
async fn a_key_in_a_cookie_is_found_whatever_other_cookies_hold() {
    let keys = format!("keys:\n  - {{ id: mobile, sha256: {}, client_key: \"user:42\" }}\n", sha256("good-key"));
    let identity = "on_unknown: refuse\nidentity: [{ api_key: { cookie: key, file: keys.yaml } }]";
    let id = IdentityRig::start(identity, &[("keys.yaml", keys.as_bytes())]).await;
    for good in [
        "Cookie: key=good-key\r\n",
        "Cookie: name=Zo\u{eb}; key=good-key\r\n",
        "Cookie: \u{ff}\r\nCookie: key=good-key\r\n",
    ] {
        assert!(id.is_own(good).await, "{good:?}");
    }
    for wrong in [
        "Cookie: key=nope\r\n",
        "Cookie: key=nope; a=\u{ff}\r\n",
        "Cookie: key=\u{ff}\r\n",
        "Cookie: key=\u{ff}\r\nCookie: key=good-key\r\n",
        "Cookie: key=good-key; key=\u{ff}\r\n",
    ] {
        assert_eq!(id.rig.get_with("/", wrong).await.status, 401, "{wrong:?}");
    }
}

#[tokio::test]
async fn a_password_proves_its_user_and_a_guess_counts_at_its_address() {
    let users = format!("# programs\nreports:{}\nother:{}\n", sha256("right: horse"), sha256("battery"));
    let identity = "identity: [{ basic: { file: users.txt } }]";
    let id = IdentityRig::start(identity, &[("users.txt", users.as_bytes())]).await;
    let right = basic("reports", "right: horse");
    assert!(id.is_own(&right).await && id.is_own(&basic("other", "battery")).await);
    for (name, password) in
        [("reports", "battery"), ("reports", ""), ("Reports", "right: horse"), ("nobody", "x"), ("", "right: horse")]
    {
        assert!(!id.is_own(&basic(name, password)).await, "{name}:{password}");
    }
    for odd in ["Authorization: Basic\r\n", "Authorization: Basic !!!\r\n", "Authorization: Basic cmVwb3J0cw==\r\n"] {
        assert!(!id.is_own(odd).await, "{odd:?}");
    }
    for guess in 0..30 {
        id.left(&basic("reports", &format!("guess-{guess}"))).await;
    }
    assert!(!id.is_own(&right).await, "an address that guesses has to wait");
    let mut elsewhere = id.rig.connect_from([127, 0, 0, 2]).await;
    left(&mut elsewhere, &right).await;
    assert!(left(&mut elsewhere, &right).await < left(&mut elsewhere, "").await, "and the user elsewhere has not");
    id.clock.advance(Span::from_secs(60));
    assert!(id.is_own(&right).await);
}

/// 401 tells how to prove an identity and nothing of why; it is not charged, and nothing is forwarded.
#[tokio::test]
async fn a_caller_that_must_prove_itself_is_401_until_it_does() {
    let users = format!("reports:{}\n", sha256("horse"));
    let identity = "on_unknown: refuse\nidentity: [{ basic: { file: users.txt } }, { api_key: { header: x-api-key } }]";
    let id = IdentityRig::start(identity, &[("users.txt", users.as_bytes())]).await;
    let right = basic("reports", "horse");
    assert_eq!((id.left("").await, id.left(&right).await), (999_999, 999_999));
    let one_way = "Basic realm=\"api\", charset=\"UTF-8\"";
    id.app.seen();
    for wrong in [basic("reports", "cow"), basic("nobody", "horse"), "X-Api-Key: guess\r\n".to_owned()] {
        let refused = id.rig.get_with("/x", &wrong).await;
        assert_eq!((refused.status, refused.field("WWW-Authenticate")), (401, Some(one_way)), "{wrong}");
        assert_eq!(refused.field("Content-Type"), Some("application/problem+json"));
        assert!(refused.body.contains("\"detail\":\"the credential is not valid\""), "{}", refused.body);
        assert!(refused.field("X-RateLimit-Remaining").is_none(), "{}", refused.head);
    }
    assert_eq!(id.app.seen().len(), 0);
    assert_eq!((id.left("").await, id.left(&right).await), (999_998, 999_998), "what is refused costs nothing");

    let none = IdentityRig::start(&format!("on_missing: refuse\n{identity}"), &[("users.txt", users.as_bytes())]).await;
    let refused = none.rig.get("/x").await;
    assert_eq!(refused.status, 401);
    assert!(refused.body.contains("\"detail\":\"this API needs a credential\""), "{}", refused.body);
    assert_eq!(none.rig.get_with("/x", &right).await.status, 200);
    assert_eq!(none.app.seen().len(), 1);
}

/// An authority of client certificates, and what it has signed.
struct ClientAuthority(Authority<'static, KeyPair>, String);

impl ClientAuthority {
    fn new() -> ClientAuthority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        ClientAuthority(Authority::new(params, key), pem)
    }

    fn client(&self, dns: &[&str], uri: Option<&str>) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let mut params = CertificateParams::new(dns.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        params.subject_alt_names.extend(uri.map(|uri| SanType::URI(uri.try_into().unwrap())));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.der().clone(), PrivateKeyDer::try_from(key.serialize_der()).unwrap())
    }
}

/// A connection that shows this certificate.
async fn connect(
    id: &IdentityRig,
    server: &str,
    client: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> Caller<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(rustls::pki_types::pem::PemObject::from_pem_slice(server.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let config = match client {
        Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key).unwrap(),
        None => builder.with_no_client_auth(),
    };
    let tcp = within(TcpStream::connect(id.rig.gateway)).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    Caller::over(within(TlsConnector::from(Arc::new(config)).connect(name, tcp)).await.unwrap())
}

const GET: &str = "GET /x HTTP/1.1\r\nHost: a\r\n";

#[tokio::test]
async fn a_name_of_a_client_certificate_proves_the_client() {
    let (authority, stranger) = (ClientAuthority::new(), ClientAuthority::new());
    let server = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let identity = "identity: [{ certificate: { san: uri } }, { certificate: { san: dns } }]";
    let files: [(&str, &[u8]); 3] = [
        ("cert.pem", server.cert.pem().leak().as_bytes()),
        ("key.pem", server.signing_key.serialize_pem().leak().as_bytes()),
        ("ca.pem", authority.1.as_bytes()),
    ];
    let id = IdentityRig::with(BY_CLIENT, identity, &files, |config| {
        let folder = config.gateway.routes.as_ref().unwrap().parent().unwrap().to_owned();
        let file = |name| Some(folder.join(name));
        (config.tls_cert, config.tls_key, config.tls_client_ca) = (file("cert.pem"), file("key.pem"), file("ca.pem"));
    })
    .await;
    let left = async |dns: &[&str], uri: Option<&str>, fields: &str| -> u64 {
        let mut caller = connect(&id, &server.cert.pem(), Some(authority.client(dns, uri))).await;
        let answer = caller.ask(format!("{GET}{fields}\r\n")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let mut lines = answer.head.lines().filter_map(|line| line.split_once(": "));
        let left = lines.find(|(name, _)| name.eq_ignore_ascii_case("x-ratelimit-remaining")).expect("a limit").1;
        left.parse().unwrap()
    };
    assert_eq!(left(&["orders.example.com"], None, "").await, 999_999);
    assert_eq!(
        left(&["Orders.Example.com", "other.example.com"], None, "").await,
        999_998,
        "the first name, in any case"
    );
    assert_eq!(left(&["billing.example.com"], None, "").await, 999_999);
    let spiffe = Some("spiffe://example.org/orders");
    assert_eq!(left(&["orders.example.com"], spiffe, "").await, 999_999, "the stronger proof comes first");
    assert_eq!(left(&[], spiffe, "").await, 999_998);
    // A certificate that names no one caller leaves the address, whatever the request says.
    assert_eq!(left(&["*.example.com"], None, "").await, 999_999);
    let forged = "X-Forwarded-Client-Cert: URI=spiffe://example.org/orders\r\nX-SSL-Client-SAN: orders.example.com\r\n";
    assert_eq!(left(&["*.example.org"], None, forged).await, 999_998);
    // Without a certificate, or with one of another authority, no request is read.
    for client in [None, Some(stranger.client(&["orders.example.com"], None))] {
        let mut caller = connect(&id, &server.cert.pem(), client).await;
        let _ = caller.send(format!("{GET}\r\n")).await;
        assert!(!matches!(caller.answer().await, Ok(Some(_))), "the handshake fails");
    }
    assert_eq!(id.app.seen().len(), 7);
}
