//! The interface between decisions and storage.

use std::fmt;

use smallvec::SmallVec;
use tollgate_core::{Charge, Outcome, Receipt, Span, Time};

/// One outcome per charge, in order. Holds four inline, as many as a decision does: every move copies the whole inline
/// buffer.
pub type Outcomes = SmallVec<[Outcome; 4]>;

/// Keeps buckets and charges them.
///
/// Implementors promise:
/// - **all or nothing**: every enforced charge of a `take` passes and all are recorded, or none is, as if no other
///   request existed in between. Two charges of one call never name the same bucket.
/// - **one clock**: the store reads its clock once per call; no clock of a caller decides.
/// - **at most once**: a charge is never recorded twice, whatever fails; a receipt is honoured once.
/// - **bounded**: neither memory nor waiting grows with the load.
pub trait Store: Send + Sync {
    /// Decides all charges together and fills `outcomes`, one for each. A call that takes longer than `within` fails,
    /// and charges nothing from then on.
    fn take(
        &self,
        charges: &[Charge],
        within: Span,
        outcomes: &mut Outcomes,
    ) -> impl Future<Output = Result<Taken, StoreError>> + Send;

    /// [`take`](Store::take), if it needs no waiting. `None`: nothing was charged, and `take` must be called.
    fn try_take(&self, _charges: &[Charge], _outcomes: &mut Outcomes) -> Option<Taken> {
        None
    }

    /// Refunds what each receipt's charge still owes, or releases its slot. Returns the number of receipts that had an
    /// effect. A receipt that was already given back has none.
    fn give_back(&self, receipts: &[Receipt]) -> impl Future<Output = Result<usize, StoreError>> + Send;

    /// Forgets the buckets that the charges name, as if they were unused: for operators, not for the path of a request.
    fn forget(&self, buckets: &[Charge]) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// True if other nodes use the same buckets. Charges must then carry their [`identity`](Charge::identity).
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
    /// The wall time of the decision: differs from `now` if the store's clock does not follow steps of the wall clock.
    pub wall: Time,
}

impl Taken {
    /// The verdict of a store whose time is the wall time.
    pub const fn new(allowed: bool, now: Time) -> Taken {
        Taken { allowed, now, wall: now }
    }
}

/// Why a store did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// The effect on the charges.
    pub kind: StoreErrorKind,
    /// A human-readable cause, without keys or secrets.
    pub detail: String,
}

/// The effect of a failed call, which decides whether it may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreErrorKind {
    /// The store cannot be reached; nothing was charged.
    Unavailable,
    /// The store rejected the call; nothing was charged.
    Refused,
    /// Too many calls are waiting; nothing was sent.
    Saturated,
    /// No answer in time: it may have been charged, and must not be retried.
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
