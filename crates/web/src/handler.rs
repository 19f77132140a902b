//! The handler trait, and the conversion of a handler's panic into a 500.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::thread;

use tollgate_net::{Peer, catch_panic};
use tollgate_service::Reply;

use crate::head::{Head, HttpError};

/// A response in progress, usually waiting for the store.
pub type PendingResponse<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Answers requests in two steps, because a body is only read for a request that may have one.
pub trait Handler: Send + Sync + 'static {
    /// State from the head, kept while the body is read.
    type Prepared: Send + Sync + 'static;

    /// Checks a head. Returns the prepared state and the maximum length of the body, or fills the reply.
    fn prepare(&self, peer: &Peer, head: &Head<'_>, reply: &mut Reply) -> Option<(Self::Prepared, usize)>;

    /// True if this request ignores the header fields that must not be repeated; otherwise a repetition is an error.
    fn may_repeat(&self, _: &Head<'_>) -> bool {
        false
    }

    /// Answers a request whose body is complete.
    fn handle(&self, prepared: &Self::Prepared, body: &[u8], reply: &mut Reply) -> impl Future<Output = ()> + Send;

    /// Answers without a future if possible: `None` means that the reply is filled. A future that can answer every
    /// request takes several kilobytes, and a request that does not wait should not move it.
    fn begin<'a>(
        &'a self,
        prepared: &'a Self::Prepared,
        body: &'a [u8],
        reply: &'a mut Reply,
    ) -> Option<PendingResponse<'a>> {
        Some(Box::pin(self.handle(prepared, body, reply)))
    }

    /// Fills the reply to a message that cannot be read.
    fn reject(&self, error: HttpError, reply: &mut Reply);

    /// Called after every response.
    fn completed(&self, prepared: Option<&Self::Prepared>, status: u16);
}

/// Answers a request. A panic becomes a 500; other requests are not affected.
pub async fn handle_or_fail<H: Handler>(handler: &H, prepared: &H::Prepared, body: &[u8], reply: &mut Reply) {
    let panicked = match begin(handler, prepared, body, reply) {
        Ok(None) => false,
        Ok(Some(pending)) => catch_panic(pending).await.is_none(),
        Err(_) => true,
    };
    if panicked {
        reply.clear();
        handler.reject(HttpError::Panicked, reply);
    }
}

/// Starts a response; an error if the handler panicked.
fn begin<'a, H: Handler>(
    handler: &'a H,
    prepared: &'a H::Prepared,
    body: &'a [u8],
    reply: &'a mut Reply,
) -> thread::Result<Option<PendingResponse<'a>>> {
    catch_unwind(AssertUnwindSafe(move || {
        let own = reply; // moved, so that the pending response can hold it
        handler.begin(prepared, body, own)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics on request.
    struct Panicking;

    impl Handler for Panicking {
        type Prepared = bool;

        fn prepare(&self, _: &Peer, _: &Head<'_>, _: &mut Reply) -> Option<(bool, usize)> {
            None
        }

        async fn handle(&self, panics: &bool, _: &[u8], reply: &mut Reply) {
            reply.body.push(b'x');
            assert!(!panics, "as requested");
            reply.status = 200;
        }

        fn reject(&self, error: HttpError, reply: &mut Reply) {
            assert_eq!(error, HttpError::Panicked);
            (reply.status, reply.close) = (500, true);
        }

        fn completed(&self, _: Option<&bool>, _: u16) {}
    }

    /// Every request moves this future.
    #[test]
    fn the_future_of_a_request_is_small() {
        let mut reply = Reply::default();
        let size = size_of_val(&handle_or_fail(&Panicking, &true, b"", &mut reply));
        assert!(size <= 160, "{size} bytes");
    }

    #[tokio::test]
    async fn a_panic_becomes_a_500_without_the_partial_body() {
        let mut reply = Reply::default();
        handle_or_fail(&Panicking, &true, b"", &mut reply).await;
        assert_eq!((reply.status, reply.body.len(), reply.close), (500, 0, true));
        reply.clear();
        handle_or_fail(&Panicking, &false, b"", &mut reply).await;
        assert_eq!((reply.status, reply.body.as_slice()), (200, &b"x"[..]));
    }
}
