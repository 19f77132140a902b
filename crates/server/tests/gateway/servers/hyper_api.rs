//! A Rust server: hyper with its defaults.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::rig::until;

pub struct HyperApi {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for HyperApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl HyperApi {
    pub async fn start() -> HyperApi {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let shared = seen.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let seen = shared.clone();
                let service = service_fn(move |request| respond(request, seen.clone()));
                connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        HyperApi { address, seen, task }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub async fn seen(&self, count: usize) -> Vec<String> {
        until(async || self.seen.lock().unwrap().len() >= count).await;
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

async fn respond(
    request: Request<Incoming>,
    seen: Arc<Mutex<Vec<String>>>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let mut text = format!("{} {} {:?}\r\n", parts.method, parts.uri, parts.version);
    for (name, value) in &parts.headers {
        text += &format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes()));
    }
    text += "\r\n";
    text.extend(body.iter().map(|byte| char::from(*byte)));
    seen.lock().unwrap().push(text);
    Ok(Response::new(Full::new(Bytes::from_static(b"from hyper"))))
}
