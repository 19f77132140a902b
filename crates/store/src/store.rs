//! The one interface between deciding and keeping.

use std::fmt;

use smallvec::SmallVec;
use tollgate_core::{Charge, Outcome, Receipt, Span, Time};

/// One outcome per charge, in order. Room for four without allocating, as many as a decision has room for: every move
/// copies all of the room, used or not.
pub type Outcomes = SmallVec<[Outcome; 4]>;

/// Keeps buckets.
///
/// Implementors promise:
/// - **all or nothing**: every enforced charge of a `take` passes and all are recorded, or none is, as if no other
///   request existed in between. Two charges of one call never name the same bucket.
/// - **one clock**: the store tells the time, once per call; no caller's clock decides.
/// - **at most once**: a charge is never recorded twice, whatever fails; a receipt is honoured once.
/// - **bounded**: neither memory nor waiting grows with what callers send.
pub trait Store: Send + Sync {
    /// Asks all charges at once and fills `outcomes`, one for each. What cannot be answered `within` that span is an
    /// error, and charges nothing from then on.
    fn take(
        &self,
        charges: &[Charge],
        within: Span,
        outcomes: &mut Outcomes,
    ) -> impl Future<Output = Result<Taken, StoreError>> + Send;

    /// [`take`](Store::take), if that needs no waiting for anyone. `None`: nothing was charged, and `take` must be asked.
    fn try_take(&self, _charges: &[Charge], _outcomes: &mut Outcomes) -> Option<Taken> {
        None
    }

    /// Refunds what each receipt's charge still owes, or releases its slot; answers how many of them gave something
    /// back. A receipt that was already given back gives nothing.
    fn give_back(&self, receipts: &[Receipt]) -> impl Future<Output = Result<usize, StoreError>> + Send;

    /// Forgets the buckets that the charges name, as if nobody had used them: for operators, not for the path of a
    /// request.
    fn forget(&self, buckets: &[Charge]) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// True if other nodes use the same buckets. Charges must then tell their [`identity`](Charge::identity).
    fn is_shared(&self) -> bool {
        false
    }

    /// How many nodes share the buckets, this one included, as far as the store knows.
    fn nodes(&self) -> Option<u64> {
        None
    }
}

/// The verdict over all charges of one call.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Every enforced charge passed, and all were recorded.
    pub allowed: bool,
    /// The store's time of the decision.
    pub now: Time,
    /// The wall time of the decision: other than `now` where the store runs on a clock that does not step.
    pub wall: Time,
}

impl Taken {
    /// The verdict of a store whose own time is the wall time.
    pub const fn new(allowed: bool, now: Time) -> Taken {
        Taken { allowed, now, wall: now }
    }
}

/// Why a store did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// What happened to the charges.
    pub kind: StoreErrorKind,
    /// What happened, for people: no keys, no secrets.
    pub detail: String,
}

/// What a failed call did, which decides whether it may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreErrorKind {
    /// The store cannot be reached; nothing was charged.
    Unavailable,
    /// The store answered and refused; nothing was charged.
    Refused,
    /// Too much is waiting already; nothing was sent.
    Saturated,
    /// The answer came too late or not at all: it may have been charged, and must not be sent again.
    Indeterminate,
}

impl StoreErrorKind {
    /// True if it is certain that nothing was charged.
    pub const fn charged_nothing(self) -> bool {
        !matches!(self, StoreErrorKind::Indeterminate)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            StoreErrorKind::Unavailable => "store unavailable, nothing charged",
            StoreErrorKind::Refused => "store refused, nothing charged",
            StoreErrorKind::Saturated => "store saturated, nothing sent",
            StoreErrorKind::Indeterminate => "store did not answer in time, may have charged",
        };
        write!(f, "{what}: {}", self.detail)
    }
}

impl std::error::Error for StoreError {}
