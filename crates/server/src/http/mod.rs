//! HTTP as a transport: bytes become a [`Head`] and a body, a [`Reply`](crate::Reply) becomes bytes.
//!
//! HTTP/1.1 is framed here, on top of `httparse`; HTTP/2 is hyper's. Framing HTTP/1.1 ourselves is what makes the
//! strictness, the deadlines and the price possible that the data API needs: hyper hides a `Content-Length` beside
//! `Transfer-Encoding` from its users (so it cannot be refused), has one timeout for idle connections and slow heads,
//! and allocates per request. What is left to do is small, because every body is short and read whole.

mod chunked;
mod date;
mod h1;
mod h2;
mod head;
mod render;
mod status;

pub use head::{Fault, Head, Length, Parsed, parse};

use std::sync::Arc;

use tollgate_core::Clock;

use crate::Reply;
use crate::net::{Drain, NetLimits, Stream};

/// Whoever answers calls. Two steps, because a body is only read for a call that may have one.
pub trait Answer: Send + Sync + 'static {
    /// What is remembered of a head while its body is read.
    type Plan: Copy + Send + 'static;

    /// Looks at a head. Answers what to do with the body, and how long it may be; or fills the reply.
    fn open(&self, head: &Head<'_>, reply: &mut Reply) -> Option<(Self::Plan, usize)>;

    /// Answers a call whose body was read.
    fn answer(&self, plan: Self::Plan, body: &[u8], reply: &mut Reply) -> impl Future<Output = ()> + Send;

    /// Answers what could not be read.
    fn refuse(&self, fault: Fault, reply: &mut Reply);

    /// An answer was made, whichever way.
    fn answered(&self, plan: Option<Self::Plan>, status: u16);
}

/// Serves one connection until it ends.
pub async fn serve(stream: Stream, limits: &NetLimits, drain: &Drain, clock: &dyn Clock, answer: &Arc<impl Answer>) {
    if speaks_h2(&stream) {
        return h2::serve(Vec::new(), stream, limits, drain, answer).await;
    }
    let connection = h1::Connection::new(stream, limits, drain, clock);
    if let h1::Ending::Preface(read, stream) = connection.serve(&**answer).await {
        h2::serve(read, stream, limits, drain, answer).await;
    }
}

/// True if the handshake agreed on HTTP/2.
fn speaks_h2(stream: &Stream) -> bool {
    matches!(stream, Stream::Tls(tls) if tls.get_ref().1.alpn_protocol() == Some(b"h2"))
}
