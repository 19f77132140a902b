//! Callers who must show a certificate: none, a stranger's, one of another name; and a change of authorities while
//! a client is connected. Then the certificate of the metrics listener.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tollgate_config::Config;
use tollgate_lab::patience::until_async;
use tollgate_net::Address;

use crate::caller::{Caller, PATIENCE};
use crate::rig::{GOOD, Rig};
use crate::tls::install;

/// Who signs certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// Certificate and key of a client of this name.
    fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

async fn connect(
    authority: &Authority,
    who: Option<&(String, String)>,
    to: SocketAddr,
) -> Option<Caller<TlsStream<TcpStream>>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let config = match who {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap()).unwrap()
        }
    };
    let stream = TcpStream::connect(to).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok().map(Caller::over)
}

/// The status of an answer, if there is one: who is refused after the handshake hears of it when it reads.
async fn status(caller: Option<&mut Caller<TlsStream<TcpStream>>>, request: &str) -> Option<u16> {
    let caller = caller?;
    caller.send(request).await.ok()?;
    caller.answer().await.ok().flatten().map(|answer| answer.status)
}

fn rig(authority: &Authority, names: &[&str]) -> (Rig, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) = authority.sign("localhost");
    for (name, text) in [("cert.pem", &certificate), ("key.pem", &key), ("clients.pem", &authority.pem)] {
        install(dir.path(), name, text);
    }
    let file = |name: &str| Some(dir.path().join(name));
    let config = Config {
        tls_cert: file("cert.pem"),
        tls_key: file("key.pem"),
        tls_client_ca: file("clients.pem"),
        tls_client_names: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Config::for_test()
    };
    (Rig::configured(config), dir)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_callers_with_a_certificate_of_a_known_authority_and_name_are_served() {
    let (ours, other) = (Authority::new(), Authority::new());
    let (rig, _dir) = rig(&ours, &["app.example"]);
    let (app, stray, forged) = (ours.sign("app.example"), ours.sign("other.example"), other.sign("app.example"));
    for (who, expected) in [(None, None), (Some(&forged), None), (Some(&stray), None), (Some(&app), Some(200))] {
        let mut caller = connect(&ours, who, rig.data).await;
        assert_eq!(status(caller.as_mut(), GOOD).await, expected);
    }
    let mut plain = Caller::connect(rig.data).await;
    let _ = plain.send(GOOD).await;
    let said = plain.bytes().await.unwrap_or_default();
    assert!(said.is_empty() || said[0] == 0x15, "an alert at most: {:?}", said.escape_ascii().to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_authorities_are_picked_up_and_nobody_who_is_connected_is_cut_off() {
    let (old, new) = (Authority::new(), Authority::new());
    let (rig, dir) = rig(&old, &[]);
    let (before, after) = (old.sign("a.example"), new.sign("b.example"));
    let mut kept = connect(&old, Some(&before), rig.data).await;
    assert_eq!(status(kept.as_mut(), GOOD).await, Some(200));
    let mut early = connect(&old, Some(&after), rig.data).await;
    assert_eq!(status(early.as_mut(), GOOD).await, None);

    install(dir.path(), "clients.pem", &new.pem); // without a signal: the change is noticed
    let is_admitted = async || {
        let mut caller = connect(&old, Some(&after), rig.data).await;
        status(caller.as_mut(), GOOD).await == Some(200)
    };
    until_async("the new authorities", PATIENCE, is_admitted).await;
    let mut late = connect(&old, Some(&before), rig.data).await;
    assert_eq!(status(late.as_mut(), GOOD).await, None, "the old authority signs for nobody new");
    assert_eq!(status(kept.as_mut(), GOOD).await, Some(200), "who was connected stays connected");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_have_a_certificate_of_their_own() {
    let authority = Authority::new();
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) = authority.sign("localhost");
    install(dir.path(), "cert.pem", &certificate);
    install(dir.path(), "key.pem", &key);
    let rig = Rig::configured(Config {
        metrics: Some(Address::loopback(0)),
        metrics_tls_cert: Some(dir.path().join("cert.pem")),
        metrics_tls_key: Some(dir.path().join("key.pem")),
        ..Config::for_test()
    });
    let metrics = rig.metrics.unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut caller = connect(&authority, None, metrics).await;
    assert_eq!(status(caller.as_mut(), request).await, Some(200));
    let mut plain = Caller::connect(metrics).await;
    let _ = plain.send(request).await;
    let said = plain.bytes().await.unwrap_or_default();
    assert!(!said.starts_with(b"HTTP"), "figures in the clear");
    rig.answers_others().await;
}
