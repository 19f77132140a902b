//! HTTP/1.1 framed by hand, on top of `httparse`.
//!
//! The check path needs stricter framing, more deadlines and fewer allocations than hyper offers: hyper hides a
//! `Content-Length` beside `Transfer-Encoding` (so it cannot be refused), has one timeout for idle connections and slow
//! heads, and allocates per request. Bodies are short and read whole, which keeps the framing small. A connection that
//! starts with the HTTP/2 preface is passed to hyper.
//!
//! | file | what |
//! |---|---|
//! | `connection` | the loop of one connection: read, answer, write, close |
//! | `head` | parses a request head, strictly |
//! | `chunked` | decodes chunked bodies |
//! | `render` | writes a reply as HTTP/1 |
//! | `status`, `date` | reason phrases, and the `Date` field |

mod chunked;
mod connection;
mod date;
mod head;
mod render;
mod status;

pub use head::{BodyLength, ParsedHead, parse};

use std::sync::Arc;

use tollgate_net::{ListenerContext, Peer, Protocol, Stream};
use tollgate_web::{Handler, h2};

/// HTTP/1.1 and HTTP/2 on a listener; `H` answers the requests.
pub struct Http<H>(Arc<H>);

impl<H: Handler> Http<H> {
    /// HTTP with this handler.
    pub fn new(handler: H) -> Http<H> {
        Http(Arc::new(handler))
    }
}

impl<H: Handler> Protocol for Http<H> {
    async fn serve(&self, stream: Stream, peer: &Peer, context: &ListenerContext) {
        let Http(handler) = self;
        if is_h2(&stream) {
            return h2::serve(Vec::new(), stream, peer, context, handler).await;
        }
        let connection = connection::Http1Connection::new(stream, peer, context);
        if let connection::ConnectionEnd::Http2(read, stream) = connection.serve(&**handler).await {
            h2::serve(read, stream, peer, context, handler).await;
        }
    }

    fn too_many_connections(&self) -> &'static [u8] {
        TOO_MANY_CONNECTIONS
    }
}

/// Sent to a connection that exceeds a cap, before anything is read.
const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n\
    Cache-Control: no-store\r\nRetry-After: 1\r\nContent-Length: 118\r\nConnection: close\r\n\r\n\
    {\"type\":\"about:blank\",\"title\":\"Too many connections\",\"status\":503,\"code\":\"too_many_connections\",\"detail\":\"Try again.\"}";

/// True if the TLS handshake agreed on HTTP/2.
fn is_h2(stream: &Stream) -> bool {
    matches!(stream, Stream::Tls(tls) if tls.get_ref().1.alpn_protocol() == Some(b"h2"))
}

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
