//! The certificate of the gateway's listener, and how it is replaced.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertifiedKey, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::app::App;
use crate::caller::Caller;
use crate::callers::leap;
use crate::rig::{Rig, until, within};
use crate::tls_server::certificate;

const NO_RULES: &str = "rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n";
const GET: &str = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";

fn write(dir: &Path, own: &CertifiedKey<KeyPair>) {
    std::fs::write(dir.join("key.pem"), own.signing_key.serialize_pem()).unwrap();
    std::fs::write(dir.join("cert.pem"), own.cert.pem()).unwrap();
}

/// A connection of a client that trusts these certificates, and the certificate that it was shown.
async fn connect(
    rig: &Rig,
    trusted: &[&CertifiedKey<KeyPair>],
) -> std::io::Result<(Caller<TlsStream<TcpStream>>, CertificateDer<'static>)> {
    let mut roots = RootCertStore::empty();
    trusted.iter().for_each(|own| roots.add(own.cert.der().clone()).unwrap());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(builder.with_root_certificates(roots).with_no_client_auth());
    let tcp = within(TcpStream::connect(rig.gateway)).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let stream = within(TlsConnector::from(config).connect(name, tcp)).await?;
    let shown = stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned();
    Ok((Caller::over(stream), shown))
}

#[tokio::test]
async fn a_certificate_is_replaced_without_losing_a_connection_and_never_by_a_broken_one() {
    let app = App::start().await;
    let (first, second) = (certificate("localhost"), certificate("localhost"));
    let rig = Rig::with(NO_RULES, |config, dir| {
        write(&dir, &first);
        config.gateway.upstream = vec![app.url()];
        (config.tls_cert, config.tls_key) = (Some(dir.join("cert.pem")), Some(dir.join("key.pem")));
    });
    let both = [&first, &second];
    let (mut old, shown) = connect(&rig, &both).await.unwrap();
    assert_eq!(&shown, first.cert.der());
    assert_eq!(old.ask(GET).await.status, 200);
    assert!(app.seen().concat().contains("x-forwarded-proto: https"));

    write(rig.dir.path(), &second);
    until(async || connect(&rig, &both).await.unwrap().1 == *second.cert.der()).await;
    let (mut new, _) = connect(&rig, &both).await.unwrap();
    assert_eq!((new.ask(GET).await.status, old.ask(GET).await.status), (200, 200), "open connections stay");
    assert!(connect(&rig, &[&first]).await.is_err(), "a client that trusts the old one alone");

    // A certificate without its key, or no certificate at all, is not taken over.
    std::fs::write(rig.dir.path().join("cert.pem"), first.cert.pem()).unwrap();
    reloaded(&rig).await;
    assert_eq!(&connect(&rig, &both).await.unwrap().1, second.cert.der());
    std::fs::write(rig.dir.path().join("cert.pem"), "no certificate\n").unwrap();
    reloaded(&rig).await;
    assert_eq!(&connect(&rig, &both).await.unwrap().1, second.cert.der());
    std::fs::write(rig.dir.path().join("key.pem"), first.signing_key.serialize_pem()).unwrap();
    std::fs::write(rig.dir.path().join("cert.pem"), first.cert.pem()).unwrap();
    until(async || connect(&rig, &both).await.unwrap().1 == *first.cert.der()).await;
    assert_eq!(new.ask(GET).await.status, 200);
}

/// Waits until the files were looked at twice: timers see the time pass, and each look gets its turn.
async fn reloaded(rig: &Rig) {
    for _ in 0..4 {
        leap(Duration::from_secs(1)).await;
        for _ in 0..3 {
            rig.metrics().await;
        }
    }
}

#[tokio::test]
async fn a_caller_without_tls_is_not_understood_where_tls_is_configured() {
    let app = App::start().await;
    let own = certificate("localhost");
    let rig = Rig::with(NO_RULES, |config, dir| {
        write(&dir, &own);
        config.gateway.upstream = vec![app.url()];
        (config.tls_cert, config.tls_key) = (Some(dir.join("cert.pem")), Some(dir.join("key.pem")));
    });
    let mut plain = rig.connect().await;
    plain.send(GET).await;
    assert!(!plain.rest().await.contains("HTTP/1.1"));
    assert_eq!(app.seen().len(), 0);
    assert_eq!(connect(&rig, &[&own]).await.unwrap().0.ask(GET).await.status, 200);
}
