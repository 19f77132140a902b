//! A slot that renews itself, and is released when its guard is dropped.
//!
//! One task of the runtime owns the receipt for as long as the guard lives, and for at most three calls after it. So the
//! number of tasks is that of the guards, and a release needs no runtime where the guard is dropped.

use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until};
use tollgate_core::{Request, Span};

use crate::failure::{CallError, RequestRejected};
use crate::transport::ServerCall;
use crate::{Client, RemoteDecision};

/// A slot of every concurrency rule that applies. Dropping it releases them: in the background, with up to three attempts.
/// What no attempt reaches expires after its time to live.
#[derive(Debug)]
#[must_use = "dropping it releases the slot at once"]
pub struct SlotGuard {
    receipt: String,
    end: Option<oneshot::Sender<ReleaseReply>>,
    lost: watch::Receiver<bool>,
}

/// To tell the result of a release; `None` if no caller waits for it.
type ReleaseReply = Option<oneshot::Sender<Result<bool, CallError>>>;

/// Attempts to release a slot.
const RELEASES_MAX: u32 = 3;
/// Time to live of a slot where the server named none: it holds no slot then, and is only released.
const UNNAMED_TTL: Span = Span::from_secs(3600);

impl Client {
    /// Takes a slot of every concurrency rule that applies; all other rules are charged as by a check. The guard renews
    /// and releases it. A call that is dropped before its answer may leave a slot behind, which expires.
    pub async fn acquire_slot(
        &self,
        request: &Request<'_>,
    ) -> Result<(RemoteDecision, Option<SlotGuard>), RequestRejected> {
        let answer = self.decide(request, ServerCall::AcquireSlot(request)).await?;
        let guard = answer.receipt.map(|receipt| SlotGuard::hold(self.clone(), receipt, answer.ttl));
        Ok((answer.decision, guard))
    }
}

impl SlotGuard {
    pub(crate) fn hold(client: Client, receipt: String, ttl: Option<Span>) -> SlotGuard {
        let (end, ended) = oneshot::channel();
        let (lost_sender, lost) = watch::channel(false);
        let keeper =
            SlotKeeper { client, receipt: receipt.clone(), ttl: ttl.unwrap_or(UNNAMED_TTL), lost: lost_sender };
        tokio::spawn(keeper.run(ended));
        SlotGuard { receipt, end: Some(end), lost }
    }

    /// The receipt, which names the slot in other calls.
    pub fn receipt(&self) -> &str {
        &self.receipt
    }

    /// False once the slot is lost: it could not be renewed in time, and belongs to another caller.
    pub fn is_held(&self) -> bool {
        !*self.lost.borrow()
    }

    /// Waits until the slot is lost: for `select!` beside the work.
    pub async fn lost(&self) {
        let mut lost = self.lost.clone();
        if lost.wait_for(|lost| *lost).await.is_err() {
            std::future::pending().await // the task has ended with the runtime: nothing is known
        }
    }

    /// Releases the slot and waits for the answer; false if it was not held any more.
    pub async fn release(mut self) -> Result<bool, CallError> {
        let (reply, answer) = oneshot::channel();
        if let Some(end) = self.end.take() {
            let _ = end.send(Some(reply));
        }
        answer.await.unwrap_or(Ok(false))
    }
}

/// The task behind a guard.
struct SlotKeeper {
    client: Client,
    receipt: String,
    ttl: Span,
    lost: watch::Sender<bool>,
}

impl SlotKeeper {
    async fn run(mut self, mut ended: oneshot::Receiver<ReleaseReply>) {
        let mut expires = Instant::now() + Duration::from(self.ttl);
        let mut next = Instant::now() + self.part();
        let reply = loop {
            tokio::select! {
                biased;
                reply = &mut ended => break reply.ok().flatten(),
                () = sleep_until(next) => {}
            }
            match self.client.renew_receipt(&self.receipt).await {
                Ok((true, ttl)) => {
                    self.ttl = ttl.unwrap_or(self.ttl);
                    expires = Instant::now() + Duration::from(self.ttl);
                    next = Instant::now() + self.part();
                }
                Err(_) if Instant::now() < expires => next = Instant::now() + self.part() / 4,
                Ok((false, _)) | Err(_) => {
                    let _ = self.lost.send(true);
                    break ended.await.ok().flatten();
                }
            }
        };
        let released = self.release().await;
        if let Some(reply) = reply {
            let _ = reply.send(released);
        }
    }

    /// Time between two renewals: two may fail before the slot expires.
    fn part(&self) -> Duration {
        (Duration::from(self.ttl) / 3).max(Duration::from_millis(10))
    }

    async fn release(&self) -> Result<bool, CallError> {
        let mut attempt = 1;
        loop {
            match self.client.release_receipt(&self.receipt).await {
                Err(CallError::Outage(_)) if attempt < RELEASES_MAX => {
                    tokio::time::sleep(self.part().min(Duration::from_secs(1)) * attempt).await;
                    attempt += 1;
                }
                answer => return answer,
            }
        }
    }
}
