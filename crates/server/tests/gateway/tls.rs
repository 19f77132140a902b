//! Encrypted connections to servers, and certificates that change.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::rig::{Rig, until};

const NO_RULES: &str = "rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n";

fn certificate() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap()
}

/// A server with this certificate, which answers one request per connection until it is aborted.
async fn serve(listener: TcpListener, own: &CertifiedKey<KeyPair>) -> AbortHandle {
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let task = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            connections.spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok").await;
                let _ = stream.shutdown().await;
            });
        }
    });
    task.abort_handle()
}

async fn again(address: SocketAddr) -> TcpListener {
    loop {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        if socket.bind(address).is_ok() {
            return socket.listen(16).unwrap();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn authorities_of_servers_are_read_again_when_their_file_changes() {
    let (first, second) = (certificate(), certificate());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = serve(listener, &first).await;
    let rig = Rig::with(NO_RULES, |config, dir| {
        std::fs::write(dir.join("ca.pem"), first.cert.pem()).unwrap();
        let path = dir.join("routes.yaml");
        let routes = format!(
            "upstreams: {{ api: {{ servers: https://{address}, ca: ca.pem }} }}\nroutes: [{{ upstream: api }}]\n"
        );
        std::fs::write(&path, routes).unwrap();
        config.gateway.routes = Some(path);
    });
    assert_eq!(rig.get("/x").await.status, 200);
    server.abort();
    let _server = serve(again(address).await, &second).await;
    until(async || rig.get("/x").await.status == 502).await;
    assert!(rig.get("/x").await.body.contains("upstream_unreachable"), "its certificate is not trusted");
    std::fs::write(rig.dir.path().join("ca.pem"), second.cert.pem()).unwrap();
    until(async || rig.get("/x").await.status == 200).await;
}
