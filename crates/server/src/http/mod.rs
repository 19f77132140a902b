//! HTTP as a transport: bytes become a [`Head`] and a body, a [`Reply`] becomes bytes.
//!
//! HTTP/1.1 is framed here, on top of `httparse`; HTTP/2 is hyper's. Framing HTTP/1.1 ourselves is what makes the
//! strictness, the deadlines and the price possible that the data API needs: hyper hides a `Content-Length` beside
//! `Transfer-Encoding` from its users (so it cannot be refused), has one timeout for idle connections and slow heads,
//! and allocates per request. What is left to do is small, because every body is short and read whole.

mod authority;
mod chunked;
mod date;
mod h1;
mod h2;
pub(crate) mod h2_head;
mod head;
mod received;
mod render;
mod status;

pub(crate) use authority::Authority;
pub(crate) use head::split_target;
pub use head::{Fault, Head, Length, Parsed, parse};
pub use received::{Found, Received};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::thread;

use crate::Reply;
use crate::caught::caught;
use crate::net::{Ground, Peer, Speak, Stream};

/// The rest of an answer that waits: for the store, as a rule.
pub type Pending<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Whoever answers calls. Two steps, because a body is only read for a call that may have one.
pub trait Answer: Send + Sync + 'static {
    /// What is remembered of a head while its body is read.
    type Plan: Send + Sync + 'static;

    /// Looks at a head. Answers what to do with the body, and how long it may be; or fills the reply.
    fn open(&self, peer: &Peer, head: &Head<'_>, reply: &mut Reply) -> Option<(Self::Plan, usize)>;

    /// True for a call to which fields that may stand once mean nothing: others are refused if one is repeated.
    fn may_repeat(&self, _: &Head<'_>) -> bool {
        false
    }

    /// Answers a call whose body was read.
    fn answer(&self, plan: &Self::Plan, body: &[u8], reply: &mut Reply) -> impl Future<Output = ()> + Send;

    /// The same, at once where nothing has to be waited for: `None` says that the reply is filled. A future that can
    /// answer every call is several kilobytes large, and a call that does not wait should not move one about.
    fn begin<'a>(&'a self, plan: &'a Self::Plan, body: &'a [u8], reply: &'a mut Reply) -> Option<Pending<'a>> {
        Some(Box::pin(self.answer(plan, body, reply)))
    }

    /// Answers what could not be read.
    fn refuse(&self, fault: Fault, reply: &mut Reply);

    /// An answer was made, whichever way.
    fn answered(&self, plan: Option<&Self::Plan>, status: u16);
}

/// Answers a call. One that panics is a bug, and is answered as such; it takes nothing else down.
async fn answer_or_fail<A: Answer>(answer: &A, plan: &A::Plan, body: &[u8], reply: &mut Reply) {
    let panicked = match begin(answer, plan, body, reply) {
        Ok(None) => false,
        Ok(Some(pending)) => caught(pending).await.is_none(),
        Err(_) => true,
    };
    if panicked {
        reply.clear();
        answer.refuse(Fault::Panicked, reply);
    }
}

/// Begins an answer; an error if that panicked.
fn begin<'a, A: Answer>(
    answer: &'a A,
    plan: &'a A::Plan,
    body: &'a [u8],
    reply: &'a mut Reply,
) -> thread::Result<Option<Pending<'a>>> {
    catch_unwind(AssertUnwindSafe(move || {
        let own = reply; // moved, so that what is pending may keep it
        answer.begin(plan, body, own)
    }))
}

/// HTTP as a listener speaks it: whatever is asked is answered by `A`.
pub struct Http<A>(Arc<A>);

impl<A: Answer> Http<A> {
    /// HTTP that `answer` answers.
    pub fn new(answer: A) -> Http<A> {
        Http(Arc::new(answer))
    }
}

impl<A: Answer> Speak for Http<A> {
    async fn speak(&self, stream: Stream, peer: &Peer, ground: &Ground) {
        let Http(answer) = self;
        if speaks_h2(&stream) {
            return h2::serve(Vec::new(), stream, peer, ground, answer).await;
        }
        if let h1::Ending::Preface(read, stream) = h1::Connection::new(stream, peer, ground).serve(&**answer).await {
            h2::serve(read, stream, peer, ground, answer).await;
        }
    }

    fn no_room(&self) -> &'static [u8] {
        NO_ROOM
    }
}

/// What is sent to a caller there is no room for, before a byte of it was read.
const NO_ROOM: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n\
    Cache-Control: no-store\r\nRetry-After: 1\r\nContent-Length: 118\r\nConnection: close\r\n\r\n\
    {\"type\":\"about:blank\",\"title\":\"Too many connections\",\"status\":503,\"code\":\"too_many_connections\",\"detail\":\"Try again.\"}";

/// True if the handshake agreed on HTTP/2.
fn speaks_h2(stream: &Stream) -> bool {
    matches!(stream, Stream::Tls(tls) if tls.get_ref().1.alpn_protocol() == Some(b"h2"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics when it is asked to.
    struct Clumsy;

    impl Answer for Clumsy {
        type Plan = bool;

        fn open(&self, _: &Peer, _: &Head<'_>, _: &mut Reply) -> Option<(bool, usize)> {
            None
        }

        async fn answer(&self, panics: &bool, _: &[u8], reply: &mut Reply) {
            reply.body.push(b'x');
            assert!(!panics, "as it was asked to");
            reply.status = 200;
        }

        fn refuse(&self, fault: Fault, reply: &mut Reply) {
            assert_eq!(fault, Fault::Panicked);
            (reply.status, reply.close) = (500, true);
        }

        fn answered(&self, _: Option<&bool>, _: u16) {}
    }

    #[test]
    fn the_refusal_says_how_long_it_is() {
        let text = str::from_utf8(NO_ROOM).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert!(serde_json::from_str::<serde_json::Value>(body).unwrap()["code"] == "too_many_connections");
    }

    /// Every call goes through it, so whatever it holds is moved for every call.
    #[test]
    fn what_answers_a_call_is_small() {
        let mut reply = Reply::default();
        let size = size_of_val(&answer_or_fail(&Clumsy, &true, b"", &mut reply));
        assert!(size <= 160, "{size} bytes");
    }

    #[tokio::test]
    async fn a_call_that_panics_is_answered_with_500_and_nothing_half_done() {
        let mut reply = Reply::default();
        answer_or_fail(&Clumsy, &true, b"", &mut reply).await;
        assert_eq!((reply.status, reply.body.len(), reply.close), (500, 0, true));
        reply.clear();
        answer_or_fail(&Clumsy, &false, b"", &mut reply).await;
        assert_eq!((reply.status, reply.body.as_slice()), (200, &b"x"[..]));
    }
}
