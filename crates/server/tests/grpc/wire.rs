//! A connection as generated clients use it: hyper's HTTP/2 over whatever carries bytes.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::codegen::Service;

/// One connection. Clones are the same one.
#[derive(Clone)]
pub struct Wire(SendRequest<Body>);

impl Wire {
    pub async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Wire {
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Wire(sender)
    }

    /// True once the server has said that it is to be used no more.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl Service<Request<Body>> for Wire {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// What a client sends on a stream, as it is put in.
pub struct Sent<T>(mpsc::UnboundedReceiver<T>);

/// A way in, and the stream that comes of it.
pub fn sent<T>() -> (mpsc::UnboundedSender<T>, Sent<T>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, Sent(receiver))
}

impl<T> futures_core::Stream for Sent<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_recv(cx)
    }
}
