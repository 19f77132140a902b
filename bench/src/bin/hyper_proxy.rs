//! The floor of `script/bench gateway`: a reverse proxy of bare hyper, which forwards and does nothing else.
//!
//! What is not the gateway is as in Tollgate: HTTP/1.1 by hyper on both sides on Tokio's threads, a stack of open
//! connections to the upstream, bodies that stream, `TCP_NODELAY`, the same allocator. It checks no head, rewrites no field,
//! has no deadlines, and knows one upstream.

use std::io::Write as _;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::Context as _;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    let address = std::env::args().nth(1).context("the address of the upstream is missing")?.parse()?;
    let upstream = Arc::new(Upstream { address, idle: Mutex::default() });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut out = std::io::stdout();
        writeln!(out, "listening on http://{}", listener.local_addr()?)?;
        out.flush()?;
        tokio::spawn(accept(listener, upstream)).await?
    })
}

async fn accept(listener: TcpListener, upstream: Arc<Upstream>) -> anyhow::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(serve(stream, upstream.clone()));
    }
}

async fn serve(stream: TcpStream, upstream: Arc<Upstream>) {
    let service = service_fn(|request| upstream.clone().forward(request));
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await; // a client may hang up
}

/// The upstream, and the connections that wait for a request.
struct Upstream {
    address: SocketAddr,
    idle: Mutex<Vec<SendRequest<Incoming>>>,
}

impl Upstream {
    async fn forward(self: Arc<Upstream>, request: Request<Incoming>) -> anyhow::Result<Response<ForwardedBytes>> {
        let mut sender = match self.take() {
            Some(sender) => sender,
            None => self.open().await?,
        };
        let response = sender.send_request(request).await?;
        Ok(response.map(|incoming| ForwardedBytes { incoming, connection: Some((sender, self)) }.put_back_if_ended()))
    }

    fn take(&self) -> Option<SendRequest<Incoming>> {
        let mut idle = self.idle.lock();
        idle.retain(|sender| !sender.is_closed());
        let ready = idle.iter().rposition(SendRequest::is_ready)?;
        Some(idle.remove(ready))
    }

    async fn open(&self) -> anyhow::Result<SendRequest<Incoming>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// The body of a response, whose connection waits for the next request behind it.
struct ForwardedBytes {
    incoming: Incoming,
    connection: Option<(SendRequest<Incoming>, Arc<Upstream>)>,
}

impl ForwardedBytes {
    fn put_back_if_ended(mut self) -> ForwardedBytes {
        self.put_back(self.incoming.is_end_stream());
        self
    }

    fn put_back(&mut self, has_ended: bool) {
        if let Some((sender, upstream)) = self.connection.take_if(|_| has_ended) {
            upstream.idle.lock().push(sender);
        }
    }
}

impl Body for ForwardedBytes {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.incoming).poll_frame(cx);
        let has_ended = matches!(&polled, Poll::Ready(None)) || self.incoming.is_end_stream();
        self.put_back(has_ended);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
