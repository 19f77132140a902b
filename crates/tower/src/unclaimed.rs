//! Decisions that hold something, on their way to their request.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::sync::oneshot;

use crate::backend::{Asked, Limited};
use crate::hold::{HeldAmount, finish};

/// Asks for a decision that may hold something. A caller that hangs up before it is there must not lose it: what has to wait does
/// so in a task, which gives back what no request waits for any more.
pub(crate) fn decided(mut decision: Pin<Box<dyn Future<Output = Limited> + Send>>, reserved: Vec<HeldAmount>) -> Asked {
    if let Poll::Ready(limited) = decision.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return Asked::Now(limited);
    }
    let (sender, limited) = oneshot::channel();
    tokio::spawn(async move {
        let _ = sender.send(Unclaimed { limited: Some(decision.await), reserved });
    });
    Asked::Later(Box::pin(async move {
        let unclaimed = limited.await.ok();
        unclaimed.and_then(|mut unclaimed: Unclaimed| unclaimed.limited.take()).unwrap_or_default()
    }))
}

/// A decision on its way to its request. Dropped there, it gives back all that it holds: the handler never ran, so it used
/// nothing.
struct Unclaimed {
    limited: Option<Limited>,
    reserved: Vec<HeldAmount>,
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(Limited { held: Some(held), .. }) = self.limited.take() {
            let reserved = std::mem::take(&mut self.reserved);
            finish(held.settle(reserved.into_iter().map(|(meter, _)| (meter, 0)).collect()));
        }
    }
}
