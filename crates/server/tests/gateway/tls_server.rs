//! An API behind TLS, over HTTP/1.1 or HTTP/2 as the handshake agrees.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// A certificate of its own for this name.
pub fn certificate(name: &str) -> CertifiedKey<KeyPair> {
    generate_simple_self_signed([name.to_owned()]).unwrap()
}

#[derive(Clone, Default)]
struct TlsState {
    seen: Arc<Mutex<Vec<String>>>,
    handshakes: Arc<Mutex<usize>>,
}

pub struct TlsServer {
    address: SocketAddr,
    state: TlsState,
    /// What `/hold` waits for.
    pub released: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TlsServer {
    /// With this certificate, and the protocols that it takes.
    pub async fn start(own: &CertifiedKey<KeyPair>, protocols: &[&[u8]]) -> TlsServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (released, receiver) = watch::channel(false);
        let state = TlsState::default();
        let shared = state.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, state, released) = (acceptor.clone(), shared.clone(), receiver.clone());
                connections.spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    *state.handshakes.lock().unwrap() += 1;
                    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    let service = service_fn(move |request| respond(request, state.clone(), released.clone()));
                    let io = TokioIo::new(stream);
                    let _ = match is_http2 {
                        true => http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await,
                        false => http1::Builder::new().serve_connection(io, service).await,
                    };
                });
            }
        });
        TlsServer { address, state, released, task }
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The same server under another name.
    pub fn url_as(&self, name: &str) -> String {
        format!("https://{name}:{}", self.address.port())
    }

    /// What it has received since the last call: version, method, target, host, body.
    pub fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.state.seen.lock().unwrap())
    }

    /// Connections whose handshake succeeded.
    pub fn handshakes(&self) -> usize {
        *self.state.handshakes.lock().unwrap()
    }
}

async fn respond(
    request: Request<Incoming>,
    state: TlsState,
    mut released: watch::Receiver<bool>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let host = parts.headers.get("host").map(|host| format!("{host:?}"));
    let host = host.or_else(|| Some(format!("\"{}\"", parts.uri.authority()?))).unwrap_or_default();
    let body = body.collect().await?.to_bytes();
    let line = format!("{:?} {} {} {host} ", parts.version, parts.method, parts.uri.path());
    state.seen.lock().unwrap().push(line + &String::from_utf8_lossy(&body));
    if parts.uri.path() == "/hold" {
        let _ = released.wait_for(|released| *released).await;
    }
    Ok(Response::new(if body.is_empty() { Full::new(Bytes::from_static(b"over tls")) } else { Full::new(body) }))
}
