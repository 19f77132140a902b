//! RESP over TLS and Unix sockets, and what becomes of it when the server ends.

use std::sync::Arc;

use rcgen::generate_simple_self_signed;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tollgate_net::Address;

use crate::rig::{Caller, Rig, command, five};

#[tokio::test]
async fn speaks_over_tls_and_not_beside_it() {
    let pair = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let rig = Rig::with(|config, dir| {
        let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
        std::fs::write(&cert, pair.cert.pem()).unwrap();
        std::fs::write(&key, pair.signing_key.serialize_pem()).unwrap();
        (config.tls_cert, config.tls_key) = (Some(cert), Some(key));
    });
    let mut roots = RootCertStore::empty();
    roots.add(pair.cert.der().clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let config =
        builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(rig.at()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let mut caller = Caller { stream };
    caller.says(&command(&["CL.THROTTLE", "k", "15", "30", "60"]), &five([0, 16, 15, -1, 2])).await;
    let (sent, expected): (Vec<u8>, Vec<u8>) = (b"PING\r\n".repeat(2000), b"+PONG\r\n".repeat(2000));
    caller.says(&sent, &expected).await;

    let mut plain = rig.caller().await;
    let _ = plain.try_send(b"PING\r\n").await;
    assert!(!plain.rest().await.unwrap_or_default().starts_with(b"+PONG"));
}

#[tokio::test]
async fn speaks_over_a_unix_socket() {
    let rig = Rig::with(|config, dir| config.resp.address = Some(Address::Unix(dir.join("resp.sock"))));
    let Address::Unix(path) = &rig.address else { panic!("a socket") };
    let mut caller = Caller { stream: UnixStream::connect(path).await.unwrap() };
    caller.says(&command(&["CL.THROTTLE", "k", "15", "30", "60"]), &five([0, 16, 15, -1, 2])).await;
    caller.send(b"CLIENT INFO\r\n").await;
    assert!(caller.reply().await.contains(" addr=unix:0 "));
}

#[tokio::test]
async fn at_the_end_what_was_sent_is_answered() {
    let rig = Rig::start();
    let mut asking = rig.caller().await;
    asking.says(b"PING\r\n", b"+PONG\r\n").await;
    let mut idle = rig.caller().await;
    idle.says(b"PING\r\n", b"+PONG\r\n").await;
    let mut slow = rig.caller().await;
    slow.says(b"PING\r\nPI", b"+PONG\r\n").await;
    rig.drain.begin();
    asking.send(&b"PING\r\n".repeat(3)).await;
    assert_eq!(asking.rest().await.unwrap(), b"+PONG\r\n".repeat(3), "the batch, and a proper end");
    slow.send(b"NG\r\n").await;
    assert_eq!(slow.rest().await.unwrap(), b"+PONG\r\n", "a command that had begun");
    assert_eq!(idle.rest().await.unwrap(), b"", "a proper end, without a word");
    drop((asking, idle, slow));
    assert_eq!(rig.end().await, 0, "none was cut");
}
