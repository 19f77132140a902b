//! TLS on the data port: what is no TLS ends, certificates change under load, and a bad pair of files changes nothing. F63.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tollgate_config::Config;
use tollgate_lab::patience::{eventually, until_async};
use tollgate_net::NetLimits;
use tollgate_net::tls::{Tls, TlsFiles};

use crate::caller::Caller;
use crate::frames::{Frames, HEADERS, begin, get};
use crate::rig::{GOOD, Rig, ms};

type Pair = CertifiedKey<KeyPair>;

fn pair() -> Pair {
    generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap()
}

/// Written beside and renamed, as careful tools do it.
pub fn install(dir: &Path, name: &str, text: &str) {
    let fresh = dir.join(format!("{name}.new"));
    fs::write(&fresh, text).unwrap();
    fs::rename(fresh, dir.join(name)).unwrap();
}

fn rig(pair: &Pair, net: NetLimits) -> (Rig, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    install(dir.path(), "cert.pem", &pair.cert.pem());
    install(dir.path(), "key.pem", &pair.signing_key.serialize_pem());
    let (tls_cert, tls_key) = (Some(dir.path().join("cert.pem")), Some(dir.path().join("key.pem")));
    (Rig::configured(Config { tls_cert, tls_key, net, ..Config::for_test() }), dir)
}

#[test]
fn files_that_cannot_be_used_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let (own, other) = (pair(), pair());
    install(dir.path(), "cert.pem", &own.cert.pem());
    install(dir.path(), "key.pem", &own.signing_key.serialize_pem());
    install(dir.path(), "other.pem", &other.signing_key.serialize_pem());
    let at = |name: &str| dir.path().join(name);
    for (cert, key, said) in [
        ("cert.pem", "other.pem", "other.pem is not the private key of "),
        ("cert.pem", "none.pem", "none.pem: there is no such file"),
        ("none.pem", "key.pem", "none.pem: there is no such file"),
        ("key.pem", "cert.pem", "key.pem holds a private key and no certificate: are the two swapped?"),
        ("cert.pem", "cert.pem", "cert.pem holds a certificate and no private key: are the two swapped?"),
    ] {
        let error = format!("{:#}", Tls::read(TlsFiles::new(&at(cert), &at(key))).unwrap_err());
        assert!(error.contains(said) && !error.contains("KeyMismatch"), "{cert} {key}: {error}");
    }
}

/// A client that knows these certificates and speaks these protocols.
fn connector(known: &[&Pair], protocols: &[&[u8]]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    for pair in known {
        roots.add(pair.cert.der().clone()).unwrap();
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let mut config =
        builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

async fn connect(connector: &TlsConnector, to: SocketAddr) -> Caller<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(to).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    Caller::over(connector.connect(name, stream).await.unwrap())
}

fn shown(caller: &Caller<TlsStream<TcpStream>>) -> CertificateDer<'static> {
    caller.stream.get_ref().1.peer_certificates().unwrap()[0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_tls_is_closed_and_others_are_served() {
    let pair = pair();
    let (rig, _dir) = rig(&pair, NetLimits { tls_timeout: ms(300), ..NetLimits::default() });
    for bytes in [GOOD.as_bytes(), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"*1\r\n$4\r\nPING\r\n", b"\x16\x03\x01", b""] {
        let mut caller = Caller::connect(rig.data).await;
        caller.send(bytes).await.unwrap();
        let mut said = Vec::new();
        while let Some(some) = caller.bytes().await.ok().filter(|some| !some.is_empty()) {
            said.extend(some);
        }
        assert!(said.is_empty() || said[0] == 0x15, "an alert at most, not {:?}", said.escape_ascii().to_string());
    }
    let mut caller = connect(&connector(&[&pair], &[b"http/1.1"]), rig.data).await;
    assert_eq!(caller.ask(GOOD).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server_says_nothing_in_plain_to_those_who_speak_tls() {
    let pair = pair();
    let (rig, _dir) = rig(&pair, NetLimits { max_connections: 1, ..NetLimits::default() });
    let mut caller = connect(&connector(&[&pair], &[]), rig.data).await;
    assert_eq!(caller.ask(GOOD).await.status, 200);
    let mut next = Caller::connect(rig.data).await;
    assert!(next.bytes().await.unwrap_or_default().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_2_is_agreed_on_in_the_handshake() {
    let pair = pair();
    let (rig, _dir) = rig(&pair, NetLimits::default());
    let mut caller = connect(&connector(&[&pair], &[b"h2", b"http/1.1"]), rig.data).await;
    assert_eq!(caller.stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    caller.send([begin(&[]), get(0, "/live")].concat()).await.unwrap();
    let mut frames = Frames::default();
    let answer = loop {
        let frame = frames.next(&mut caller).await.expect("an answer");
        if frame.kind == HEADERS {
            break frame;
        }
    };
    assert_eq!(answer.payload.first(), Some(&0x88), "200");
}

/// Waits until new connections are shown this certificate.
async fn until_shown(connector: &TlsConnector, rig: &Rig, pair: &Pair) {
    let ask = async || (shown(&connect(connector, rig.data).await) == *pair.cert.der()).then_some(());
    eventually("the new certificate", ms(20_000), ask).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_certificate_is_picked_up_under_load_and_a_wrong_one_is_not() {
    let (old, new, stray) = (pair(), pair(), pair());
    let (rig, dir) = rig(&old, NetLimits::default());
    let connector = connector(&[&old, &new], &[b"http/1.1"]);
    let (go_on, answered) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let mut load = Vec::new();
    for _ in 0..4 {
        let mut caller = connect(&connector, rig.data).await;
        let (go_on, answered) = (go_on.clone(), answered.clone());
        load.push(tokio::spawn(async move {
            while go_on.load(Ordering::Relaxed) {
                let answer = caller.ask(GOOD).await;
                assert_eq!((answer.status, answer.closes()), (200, false));
                answered.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    // A key that does not belong to it: the old pair stays, however it is asked to read again.
    install(dir.path(), "key.pem", &stray.signing_key.serialize_pem());
    rig.hang_up.notify_one();
    let since = Instant::now();
    while since.elapsed() < ms(1300) {
        assert_eq!(shown(&connect(&connector, rig.data).await), *old.cert.der());
    }
    install(dir.path(), "cert.pem", "no certificate at all");
    rig.hang_up.notify_one();
    for _ in 0..10 {
        assert_eq!(shown(&connect(&connector, rig.data).await), *old.cert.der());
    }

    install(dir.path(), "cert.pem", &new.cert.pem());
    install(dir.path(), "key.pem", &new.signing_key.serialize_pem());
    until_shown(&connector, &rig, &new).await;
    let before = answered.load(Ordering::Relaxed);
    let goes_on = async || answered.load(Ordering::Relaxed) > before;
    until_async("answers on open connections", ms(20_000), goes_on).await;
    go_on.store(false, Ordering::Relaxed);
    for caller in load {
        caller.await.expect("a connection that was open stays open");
    }
}
