//! TLS to the store. Names begin with the row of the fault matrix.

use std::fs;
use std::path::PathBuf;

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use tempfile::TempDir;
use tollgate_lab::redis::RedisServer;
use tollgate_store::StoreErrorKind;
use tollgate_store_redis::RedisConfig;
use tollgate_store_redis::breaker::Phase;

use crate::rig::{PATIENT, config, consume, start, take, until, warm};

struct TlsServer {
    server: RedisServer,
    port: u16,
    directory: TempDir,
}

impl TlsServer {
    fn start() -> TlsServer {
        let CertifiedKey { cert, signing_key } = pair();
        TlsServer::with(&cert.pem(), &signing_key.serialize_pem(), "no")
    }

    /// A server with this certificate, which may require a client certificate.
    fn with(certificate: &str, key: &str, clients: &str) -> TlsServer {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("cert.pem"), certificate).unwrap();
        fs::write(directory.path().join("key.pem"), key).unwrap();
        fs::write(directory.path().join("other.pem"), pair().cert.pem()).unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = RedisServer::start_with(&[
            "--tls-port",
            &port.to_string(),
            "--tls-cert-file",
            &path("cert.pem"),
            "--tls-key-file",
            &path("key.pem"),
            "--tls-ca-cert-file",
            &path("cert.pem"),
            "--tls-auth-clients",
            clients,
        ]);
        TlsServer { server, port, directory }
    }

    fn config(&self, ca: &str) -> RedisConfig {
        let mut config = config(self.port);
        config.url.tls = true;
        config.url.hosts[0].host = "localhost".to_owned();
        config.ca = Some(self.file(ca));
        config
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

fn pair() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap()
}

#[tokio::test]
async fn f63_a_server_whose_certificate_is_trusted_is_used() {
    let server = TlsServer::start();
    let primary = warm(server.config("cert.pem")).await;
    assert!(take(&primary, consume(1), PATIENT).await.unwrap());
    assert_eq!(primary.stats().connect_failures, 0);
}

#[tokio::test]
async fn f63_a_server_whose_certificate_is_not_trusted_is_never_asked() {
    let server = TlsServer::start();
    let primary = start(server.config("other.pem"));
    until("open", || primary.health().phase == Phase::Open).await;
    let error = take(&primary, consume(1), PATIENT).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
    assert!(error.detail.contains("TLS"), "{error}");
    let info = server.server.client().call(&["INFO", "commandstats"]);
    let info = String::from_utf8_lossy(info.text().unwrap()).into_owned();
    assert!(!info.contains("cmdstat_eval"), "{info}");
}

#[tokio::test]
async fn f63_an_authority_that_is_put_right_is_read_again() {
    let server = TlsServer::start();
    let primary = start(server.config("other.pem"));
    until("open", || primary.health().phase == Phase::Open).await;
    fs::copy(server.file("cert.pem"), server.file("other.pem")).unwrap();
    until("trusted", || primary.health().phase != Phase::Open).await;
}

#[tokio::test]
async fn f63_a_certificate_of_another_host_or_a_malformed_one_is_not_trusted() {
    let server = TlsServer::start();
    let mut by_address = server.config("cert.pem");
    by_address.url.hosts[0].host = "127.0.0.1".to_owned();
    for config in [by_address, server.config("key.pem"), server.config("absent.pem")] {
        let primary = start(config);
        until("open", || primary.health().phase == Phase::Open).await;
    }
}

#[tokio::test]
async fn unverified_tls_must_be_spelled_out() {
    let server = TlsServer::start();
    let primary = warm(RedisConfig { insecure_tls: true, ..server.config("other.pem") }).await;
    assert!(take(&primary, consume(1), PATIENT).await.unwrap());
}

#[tokio::test]
async fn a_server_without_tls_is_not_asked_in_plain_words() {
    let server = RedisServer::start();
    let mut config = config(server.port());
    config.url.tls = true;
    let primary = start(config);
    until("open", || primary.health().phase == Phase::Open).await;
}

/// A self-signed certificate, with or without names, that may sign others or not.
fn self_signed(names: &[&str], is_ca: rcgen::IsCa) -> (String, String) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut parameters = rcgen::CertificateParams::new(names).unwrap();
    parameters.is_ca = is_ca;
    let key = KeyPair::generate().unwrap();
    (parameters.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// Of version 1, until 2126: `openssl x509 -req -signkey` makes such ones, and no library of ours does.
fn version_1() -> (String, String) {
    (include_str!("assets/version-1.pem").to_owned(), include_str!("assets/version-1.key").to_owned())
}

/// What `redis-cli --cacert` takes: its own authority, an end entity in the file, without names, of version 1.
#[tokio::test]
async fn self_signed_certificates_of_every_kind_are_trusted_if_they_are_named() {
    let authority = || rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let kinds = [
        ("its own authority", self_signed(&["localhost"], authority())),
        ("no authority", self_signed(&["localhost"], rcgen::IsCa::ExplicitNoCa)),
        ("without names", self_signed(&[], authority())),
        ("of version 1", version_1()),
    ];
    for (kind, (certificate, key)) in kinds {
        let server = TlsServer::with(&certificate, &key, "no");
        let primary = warm(server.config("cert.pem")).await;
        assert!(take(&primary, consume(1), PATIENT).await.unwrap(), "{kind}");
        let stranger = start(server.config("other.pem"));
        until("open", || stranger.health().phase == Phase::Open).await;
    }
}

/// A certificate that ran out is refused, trusted or not.
#[tokio::test]
async fn a_trusted_certificate_must_be_valid() {
    let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    parameters.not_before = rcgen::date_time_ymd(2020, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2020, 1, 2);
    let key = KeyPair::generate().unwrap();
    let server = TlsServer::with(&parameters.self_signed(&key).unwrap().pem(), &key.serialize_pem(), "no");
    let primary = start(server.config("cert.pem"));
    until("open", || primary.health().phase == Phase::Open).await;
    assert!(primary.health().trouble.unwrap().contains("TLS"));
}

#[tokio::test]
async fn the_host_name_may_be_skipped_and_the_chain_may_not() {
    let server = TlsServer::start();
    let elsewhere = |ca| {
        let mut config = server.config(ca);
        config.url.hosts[0].host = "127.0.0.1".to_owned();
        RedisConfig { skip_hostname: true, ..config }
    };
    let primary = warm(elsewhere("cert.pem")).await;
    assert!(take(&primary, consume(1), PATIENT).await.unwrap());
    let stranger = start(elsewhere("other.pem"));
    until("open", || stranger.health().phase == Phase::Open).await;
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_is_shown_one() {
    let CertifiedKey { cert, signing_key } = pair();
    let server = TlsServer::with(&cert.pem(), &signing_key.serialize_pem(), "yes");
    let own = Some((server.file("cert.pem"), server.file("key.pem")));
    let primary = warm(RedisConfig { client_certificate: own, ..server.config("cert.pem") }).await;
    assert!(take(&primary, consume(1), PATIENT).await.unwrap());
    let nameless = start(server.config("cert.pem"));
    until("open", || nameless.health().phase == Phase::Open).await;
}
