//! HTTP/1.1 framed by hand, on top of `httparse`.
//!
//! The check path needs stricter framing, more deadlines and fewer allocations than hyper offers: hyper hides a
//! `Content-Length` beside `Transfer-Encoding` (so it cannot be refused), has one timeout for idle connections and slow
//! heads, and allocates per request. Bodies are short and read whole, which keeps the framing small. A connection that
//! starts with the HTTP/2 preface is passed to hyper. Heads and chunks are parsed by `tollgate_web::h1`, which the other
//! listeners use too. Nothing that streams belongs here.
//!
//! | file | what |
//! |---|---|
//! | `connection` | the loop of one connection: read, answer, write, close |
//! | `render` | writes a reply as HTTP/1 |
//! | `status`, `date` | reason phrases, and the `Date` field |

mod connection;
mod date;
mod render;
mod status;

use std::sync::Arc;

use tollgate_net::{ListenerContext, Peer, Protocol, Stream};
use tollgate_web::{Buffered, Handler, TOO_MANY_CONNECTIONS, h2};

/// HTTP/1.1 framed by hand, and HTTP/2, on a listener; `H` answers the requests.
pub struct Http<H> {
    handler: Arc<H>,
    /// The same handler, for HTTP/2.
    app: Arc<Buffered<H>>,
}

impl<H: Handler> Http<H> {
    /// HTTP with this handler.
    pub fn new(handler: H) -> Http<H> {
        let handler = Arc::new(handler);
        Http { app: Arc::new(Buffered::new(handler.clone())), handler }
    }
}

impl<H: Handler> Protocol for Http<H> {
    async fn serve(&self, stream: Stream, peer: &Peer, context: &ListenerContext) {
        let Http { handler, app } = self;
        if h2::is_agreed(&stream) {
            return h2::serve(Vec::new(), stream, peer, context, app).await;
        }
        let connection = connection::Http1Connection::new(stream, peer, context);
        if let connection::ConnectionEnd::Http2(read, stream) = connection.serve(&**handler).await {
            h2::serve(read, stream, peer, context, app).await;
        }
    }

    fn too_many_connections(&self) -> &'static [u8] {
        TOO_MANY_CONNECTIONS
    }
}
