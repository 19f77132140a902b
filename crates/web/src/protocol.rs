//! HTTP/1.1 and HTTP/2 by hyper, as a protocol of a listener.

use std::sync::Arc;

use tollgate_net::{ListenerContext, Peer, Protocol, Stream};

use crate::app::WebApp;
use crate::checked_stream::{CheckedStream, FirstBytes};
use crate::{h1_connection, h2};

/// HTTP/1.1 and HTTP/2 on a listener; `A` answers the requests.
pub struct Web<A>(Arc<A>);

impl<A: WebApp> Web<A> {
    /// HTTP with this app.
    pub fn new(app: A) -> Web<A> {
        Web(Arc::new(app))
    }
}

impl<A: WebApp> Protocol for Web<A> {
    async fn serve(&self, stream: Stream, peer: &Peer, context: &ListenerContext) {
        let Web(app) = self;
        if h2::is_agreed(&stream) {
            return Box::pin(h2::serve(Vec::new(), stream, peer, context, app)).await;
        }
        match CheckedStream::new(stream, context).first_bytes().await {
            FirstBytes::Http1(stream) => h1_connection::serve(*stream, peer, context, app).await,
            // On the heap: connections of HTTP/1 are most, and need less room.
            FirstBytes::Http2(read, stream) => Box::pin(h2::serve(read, stream, peer, context, app)).await,
            FirstBytes::Nothing(stream) => stream.linger().await,
        }
    }

    fn too_many_connections(&self) -> &'static [u8] {
        TOO_MANY_CONNECTIONS
    }
}

/// Sent to a connection that exceeds a cap, before anything is read.
pub const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n\
    Cache-Control: no-store\r\nRetry-After: 1\r\nContent-Length: 118\r\nConnection: close\r\n\r\n\
    {\"type\":\"about:blank\",\"title\":\"Too many connections\",\"status\":503,\"code\":\"too_many_connections\",\"detail\":\"Try again.\"}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_length_of_the_refusal_is_right() {
        let text = str::from_utf8(TOO_MANY_CONNECTIONS).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert!(serde_json::from_str::<serde_json::Value>(body).unwrap()["code"] == "too_many_connections");
    }
}
