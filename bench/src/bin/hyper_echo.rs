//! The floor of `script/bench http`: bare hyper. It reads the body and sends a constant answer.
//!
//! Everything that is not the limiter is as in Tollgate: HTTP/1.1 by hyper on Tokio's threads, replies to pipelined
//! requests in one write, `TCP_NODELAY`, the same allocator, an answer of the same size.

use std::convert::Infallible;
use std::io::Write as _;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ANSWER: &[u8] = br#"{"allowed":true,"remaining":999999,"limit":1000000,"retry_after":null,"retry_after_ms":null,"reset_at":1794700000,"rule":"orders","mode":"normal"}"#;

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut out = std::io::stdout();
        writeln!(out, "listening on http://{}", listener.local_addr()?)?;
        out.flush()?;
        // Accepted on a thread of the pool, as in any server that spawns its loop, and not on this one.
        tokio::spawn(accept(listener)).await?
    })
}

async fn accept(listener: TcpListener) -> anyhow::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(serve(stream));
    }
}

async fn serve(stream: TcpStream) {
    let connection =
        http1::Builder::new().pipeline_flush(true).serve_connection(TokioIo::new(stream), service_fn(answer));
    let _ = connection.await; // a client that disconnects is not an error
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let read = request.into_body().collect().await.map(|body| body.to_bytes().len());
    let mut response = Response::new(Full::new(Bytes::from_static(ANSWER)));
    if read.is_err() {
        *response.status_mut() = hyper::StatusCode::BAD_REQUEST;
    }
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
