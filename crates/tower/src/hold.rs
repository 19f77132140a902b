//! What a request holds until its response has ended: estimates to be settled, slots to be returned.
//!
//! A guard settles when it is dropped, wherever the request ends: the handler's future is dropped, its service fails, the
//! body is cut off. Where nothing has to be waited for, that happens at once; otherwise in a task of the runtime, which
//! takes as long as the deadline of the store, or the timeout of the client, allows.

use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::sync::oneshot;

/// An amount of a meter.
pub type HeldAmount = (String, u64);

/// The end of a settlement, or of a renewal.
pub type AmountsFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What a decision charged in advance.
pub trait HeldCharges: Send + Sync + 'static {
    /// How long its slots last without a renewal; `None` if it holds none.
    fn slot_ttl(&self) -> Option<Duration>;

    /// A sign of life: false if the slots are lost. Gives itself back.
    fn renew(self: Box<Self>) -> AmountsFuture<(Box<dyn HeldCharges>, bool)>;

    /// The real amounts. Meters without one keep their estimate.
    fn settle(self: Box<Self>, amounts: Vec<HeldAmount>) -> AmountsFuture<()>;
}

/// What a handler used, as an extension of its response: settled when the body has ended.
///
/// ```
/// use tollgate_tower::UsedAmounts;
/// let mut response = http::Response::new("an answer of 30 tokens");
/// response.extensions_mut().insert(UsedAmounts::of("tokens", 30));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsedAmounts(pub Vec<HeldAmount>);

impl UsedAmounts {
    /// The amount of one meter.
    pub fn of(meter: impl Into<String>, amount: u64) -> UsedAmounts {
        UsedAmounts(vec![(meter.into(), amount)])
    }

    /// And that of another.
    pub fn and(mut self, meter: impl Into<String>, amount: u64) -> UsedAmounts {
        self.0.push((meter.into(), amount));
        self
    }
}

/// Settles when it is dropped.
pub(crate) struct HoldGuard {
    held: HeldState,
    amounts: Vec<HeldAmount>,
}

enum HeldState {
    /// Estimates alone.
    Estimates(Option<Box<dyn HeldCharges>>),
    /// Slots too: a task renews them, and settles at the amounts that it is sent.
    Slots(Option<oneshot::Sender<Vec<HeldAmount>>>),
}

impl HoldGuard {
    pub(crate) fn new(held: Box<dyn HeldCharges>) -> HoldGuard {
        let held = match held.slot_ttl() {
            None => HeldState::Estimates(Some(held)),
            Some(ttl) => {
                let (sender, ended) = oneshot::channel();
                tokio::spawn(keep(held, ttl, ended));
                HeldState::Slots(Some(sender))
            }
        };
        HoldGuard { held, amounts: Vec::new() }
    }

    /// Settles at these amounts.
    pub(crate) fn used(&mut self, amounts: Vec<HeldAmount>) {
        self.amounts = amounts;
    }
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        let amounts = std::mem::take(&mut self.amounts);
        match &mut self.held {
            HeldState::Estimates(held) => {
                if let Some(held) = held.take() {
                    finish(held.settle(amounts));
                }
            }
            HeldState::Slots(ended) => {
                if let Some(ended) = ended.take() {
                    let _ = ended.send(amounts); // without its task the runtime has ended
                }
            }
        }
    }
}

/// Runs a future to its end: here if it need not wait, otherwise in a task.
pub(crate) fn finish(mut future: AmountsFuture<()>) {
    // A client's call needs a runtime from its first poll on; without one the process ends, and nothing is settled.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        runtime.spawn(future);
    }
}

/// Renews slots until the request has ended, then settles.
async fn keep(mut held: Box<dyn HeldCharges>, ttl: Duration, mut ended: oneshot::Receiver<Vec<HeldAmount>>) {
    let every = (ttl / 3).max(Duration::from_millis(10));
    let amounts = loop {
        tokio::select! {
            biased;
            amounts = &mut ended => break amounts.unwrap_or_default(),
            () = tokio::time::sleep(every) => {}
        }
        let is_held;
        (held, is_held) = held.renew().await;
        if !is_held {
            break (&mut ended).await.unwrap_or_default();
        }
    };
    held.settle(amounts).await;
}
