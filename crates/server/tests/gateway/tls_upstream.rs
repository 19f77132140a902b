//! What the gateway proves to `https` servers, and which protocol they agree on.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::rig::{Rig, until};

const NO_RULES: &str = "rules: [{ match: { endpoint: /limited }, limit: { requests: 1, window: 1h } }]\n";

fn self_signed() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap()
}

/// A certificate for clients, which is its own authority.
fn client() -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    (CertificateParams::new(vec!["gateway.example.com".to_owned()]).unwrap().self_signed(&key).unwrap(), key)
}

/// A server, and the protocol of each request.
struct TlsApi {
    address: SocketAddr,
    own: CertifiedKey<KeyPair>,
    seen: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for TlsApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TlsApi {
    /// A server that offers these protocols, and wants a certificate of one of `clients` where there are some.
    async fn start(protocols: &[&str], clients: &[&rcgen::Certificate]) -> TlsApi {
        let own = self_signed();
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
        let builder = match clients {
            [] => builder.with_no_client_auth(),
            clients => {
                let mut roots = RootCertStore::empty();
                clients.iter().for_each(|client| roots.add(client.der().clone()).unwrap());
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_single_cert(vec![own.cert.der().clone()], key).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let task = tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), seen.clone()));
        TlsApi { address, own, seen, task }
    }

    /// A gateway in front of it; `more` is added to the upstream, and `files` to its folder.
    fn rig(&self, more: &str, files: &[(&str, String)]) -> Rig {
        Rig::with(NO_RULES, |config, dir| {
            std::fs::write(dir.join("ca.pem"), self.own.cert.pem()).unwrap();
            files.iter().for_each(|(name, text)| std::fs::write(dir.join(name), text).unwrap());
            let path = dir.join("routes.yaml");
            let address = self.address;
            let routes = format!(
                "upstreams: {{ api: {{ servers: https://{address}, ca: ca.pem, ejection: {{ after: 0 }}{more} }} }}\n\
                 routes: [{{ upstream: api }}]\n"
            );
            std::fs::write(&path, routes).unwrap();
            config.gateway.routes = Some(path);
        })
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, seen: Arc<Mutex<Vec<String>>>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (acceptor, seen) = (acceptor.clone(), seen.clone());
        connections.spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let service = service_fn(move |request: Request<Incoming>| {
                seen.lock().unwrap().push(format!("{:?}", request.version()));
                async { Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from_static(b"ok")))) }
            });
            let stream = TokioIo::new(stream);
            let _ = match is_http2 {
                true => {
                    hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                        .serve_connection(stream, service)
                        .await
                }
                false => hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await,
            };
        });
    }
}

#[tokio::test]
async fn a_server_that_offers_http2_gets_it_and_others_http1() {
    for (offered, expected) in [(&["h2", "http/1.1"][..], "HTTP/2.0"), (&["http/1.1"], "HTTP/1.1"), (&[], "HTTP/1.1")] {
        let api = TlsApi::start(offered, &[]).await;
        let rig = api.rig("", &[]);
        for _ in 0..3 {
            let answer = rig.get("/x").await;
            assert_eq!((answer.status, answer.body.as_str()), (200, "ok"), "{offered:?}: {answer:?}");
        }
        assert_eq!(api.seen(), [expected; 3], "{offered:?}");
    }
}

#[tokio::test]
async fn the_gateway_proves_itself_and_with_another_certificate_when_its_files_change() {
    let ((certificate, key), (other, other_key)) = (client(), client());
    for protocols in [&["h2"][..], &[]] {
        let api = TlsApi::start(protocols, &[&certificate]).await;
        let rig = api.rig("", &[]);
        assert_eq!(rig.get("/x").await.status, 502, "a server that wants a certificate");
        let files = [("own.pem", other.pem()), ("own.key", other_key.serialize_pem())];
        let rig = api.rig(", cert: own.pem, key: own.key", &files);
        assert_eq!(rig.get("/x").await.status, 502, "another one");
        std::fs::write(rig.dir.path().join("own.pem"), certificate.pem()).unwrap();
        std::fs::write(rig.dir.path().join("own.key"), key.serialize_pem()).unwrap();
        until(async || rig.get("/x").await.status == 200).await;
    }
}
