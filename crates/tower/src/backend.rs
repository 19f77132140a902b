//! What decides: an engine in this process, or a server.

use std::pin::Pin;
use std::time::Duration;

use tollgate_core::Request;

use crate::answer::LimitedResponse;
use crate::hold::HeldCharges;

/// Decides the requests of a layer. Implemented for engines over any store, and for the client of a server.
pub trait LimitBackend: Send + Sync + 'static {
    /// Decides, at once if it needs no waiting.
    fn ask(&self, question: &LimitQuestion<'_>) -> Asked;
}

/// What a layer asks.
#[derive(Clone, Copy, Debug)]
pub struct LimitQuestion<'a> {
    /// The request.
    pub request: Request<'a>,
    /// Its amounts are estimates, to be settled.
    pub reserves: bool,
    /// The name of the deciding rule is wanted, for an event.
    pub reports: bool,
    /// What the caller accepts.
    pub accept: &'a [u8],
}

impl LimitQuestion<'_> {
    /// The estimates of meters, for a reservation.
    pub(crate) fn reserved(&self) -> Vec<(String, u64)> {
        self.request.costs.iter().map(|(meter, amount)| ((*meter).to_owned(), *amount)).collect()
    }
}

/// The answer, or a future of it.
pub enum Asked {
    /// Decided.
    Now(Limited),
    /// Waits for a store or a server.
    Later(Pin<Box<dyn Future<Output = Limited> + Send>>),
}

/// A decision about a request of the application.
#[derive(Default)]
pub struct Limited {
    /// Whether it may pass.
    pub allowed: bool,
    /// What decided.
    pub mode: std::borrow::Cow<'static, str>,
    /// The deciding rule.
    pub rule: Option<Box<str>>,
    /// How long it waits for its turn in a queue.
    pub delay: Duration,
    /// Header fields, for whatever response there will be; status and body if it is refused.
    pub response: LimitedResponse,
    /// What it holds until its response has ended.
    pub held: Option<Box<dyn HeldCharges>>,
}
