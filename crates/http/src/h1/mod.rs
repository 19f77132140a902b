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
//! | `connection` | the protocol of a listener, and the loop of one connection: read, answer, write, close |
//! | `response` | writes a reply as HTTP/1 |

mod connection;
mod response;

pub use self::connection::Http;
