//! TLS to the store. Names begin with the row of the fault matrix.

use std::fs;
use std::path::PathBuf;

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use tempfile::TempDir;
use tollgate_store::StoreErrorKind;
use tollgate_store_redis::RedisConfig;
use tollgate_store_redis::breaker::Phase;
use tollgate_testkit::redis::Server;

use crate::house::{PATIENT, config, consume, start, take, until, warm};

struct House {
    server: Server,
    port: u16,
    directory: TempDir,
}

impl House {
    fn start() -> House {
        let directory = tempfile::tempdir().unwrap();
        let CertifiedKey { cert, signing_key } = pair();
        fs::write(directory.path().join("cert.pem"), cert.pem()).unwrap();
        fs::write(directory.path().join("key.pem"), signing_key.serialize_pem()).unwrap();
        fs::write(directory.path().join("other.pem"), pair().cert.pem()).unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Server::start_with(&[
            "--tls-port",
            &port.to_string(),
            "--tls-cert-file",
            &path("cert.pem"),
            "--tls-key-file",
            &path("key.pem"),
            "--tls-ca-cert-file",
            &path("cert.pem"),
            "--tls-auth-clients",
            "no",
        ]);
        House { server, port, directory }
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
    let house = House::start();
    let primary = warm(house.config("cert.pem")).await;
    assert!(take(&primary, consume(1), PATIENT).await.unwrap());
    assert_eq!(primary.stats().connect_failures, 0);
}

#[tokio::test]
async fn f63_a_server_whose_certificate_is_not_trusted_is_never_asked() {
    let house = House::start();
    let primary = start(house.config("other.pem"));
    until("open", || primary.health().phase == Phase::Open).await;
    let error = take(&primary, consume(1), PATIENT).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
    assert!(error.detail.contains("TLS"), "{error}");
    let info = house.server.client().call(&["INFO", "commandstats"]);
    let info = String::from_utf8_lossy(info.text().unwrap()).into_owned();
    assert!(!info.contains("cmdstat_eval"), "{info}");
}

#[tokio::test]
async fn f63_an_authority_that_is_put_right_is_read_again() {
    let house = House::start();
    let primary = start(house.config("other.pem"));
    until("open", || primary.health().phase == Phase::Open).await;
    fs::copy(house.file("cert.pem"), house.file("other.pem")).unwrap();
    until("trusted", || primary.health().phase != Phase::Open).await;
}

#[tokio::test]
async fn f63_what_stands_for_another_host_or_is_no_certificate_is_not_trusted() {
    let house = House::start();
    let mut by_address = house.config("cert.pem");
    by_address.url.hosts[0].host = "127.0.0.1".to_owned();
    for config in [by_address, house.config("key.pem"), house.config("absent.pem")] {
        let primary = start(config);
        until("open", || primary.health().phase == Phase::Open).await;
    }
}

#[tokio::test]
async fn unverified_tls_must_be_spelled_out() {
    let house = House::start();
    let primary = warm(RedisConfig { insecure_tls: true, ..house.config("other.pem") }).await;
    assert!(take(&primary, consume(1), PATIENT).await.unwrap());
}

#[tokio::test]
async fn a_server_without_tls_is_not_asked_in_plain_words() {
    let server = Server::start();
    let mut config = config(server.port());
    config.url.tls = true;
    let primary = start(config);
    until("open", || primary.health().phase == Phase::Open).await;
}
