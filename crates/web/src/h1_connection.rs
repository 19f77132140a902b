//! HTTP/1.1 over hyper, behind the strict reader.

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tollgate_net::{ListenerContext, Peer};

use crate::app::WebApp;
use crate::checked_stream::CheckedStream;
use crate::respond::{Via, respond};

/// hyper reads and writes through buffers that grow up to this, and a head has to fit.
const BUFFER_BYTES: usize = 64 << 10;

/// Header fields that hyper takes without allocating for them.
const HEADERS_ON_STACK: usize = 100;

/// Serves an HTTP/1 connection until it ends.
pub(crate) async fn serve<A: WebApp>(stream: CheckedStream, peer: &Peer, context: &ListenerContext, app: &Arc<A>) {
    let gate = stream.gate();
    let service = service_fn(|request: Request<Incoming>| {
        let via = Via::Http1(gate.clone());
        Box::pin(async move { Ok::<_, Infallible>(respond(&**app, peer, context, request, via).await) })
    });
    let mut builder = Builder::new();
    builder
        .half_close(!app.ends_with_client())
        .header_read_timeout(None) // the stream has its own
        .title_case_headers(app.writes_title_case())
        .max_buf_size(BUFFER_BYTES.max(2 * context.limits.max_head));
    // The stream has checked the number; hyper allocates for every request if it is told one.
    if context.limits.max_headers > HEADERS_ON_STACK {
        builder.max_headers(context.limits.max_headers);
    }
    let mut connection = builder.serve_connection(TokioIo::new(stream), service);
    // Other errors concern only the client: it is gone, or a response failed midway and must not look complete.
    let ended = poll_fn(|cx| connection.poll_without_shutdown(cx)).await;
    if let Some(tunnel) = gate.take_tunnel().filter(|_| ended.is_ok()) {
        let parts = connection.into_parts();
        return tunnel.take_over(parts.io.into_inner().into_tunneled(&parts.read_buf)).await;
    }
    if ended.map_or_else(|error| error.is_incomplete_message(), |()| true) {
        connection.into_parts().io.into_inner().into_stream().linger().await;
    }
}
