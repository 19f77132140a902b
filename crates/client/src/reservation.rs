//! Estimates that were charged, to be settled.

use tollgate_core::Span;

/// Estimates that were charged, and slots that are held. If it is dropped, the estimates stay charged and the slots
/// expire.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "settle it, or its estimates stay charged"]
pub struct RemoteReservation {
    pub(crate) receipt: String,
    pub(crate) ttl: Option<Span>,
    pub(crate) is_lost: bool,
}

impl RemoteReservation {
    pub(crate) fn of(receipt: Option<String>, ttl: Option<Span>) -> Option<RemoteReservation> {
        receipt.map(|receipt| RemoteReservation { receipt, ttl, is_lost: false })
    }

    /// The reservation of a receipt that came from elsewhere: it can be settled at any node, by any client.
    pub fn from_receipt(receipt: impl Into<String>) -> RemoteReservation {
        RemoteReservation { receipt: receipt.into(), ttl: None, is_lost: false }
    }

    /// The receipt, which the server signed.
    pub fn receipt(&self) -> &str {
        &self.receipt
    }

    /// How long its slots last without a renewal or an extension; `None` if it holds none.
    pub fn ttl(&self) -> Option<Span> {
        self.ttl
    }

    /// True once an extension has found a slot expired: waiting does not help.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }
}

/// What a settlement changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteSettlement {
    /// False if it was settled before.
    pub settled: bool,
    /// Buckets that got units back.
    pub refunded: u64,
    /// Buckets that were charged more.
    pub extended: u64,
    /// By how much the real amounts exceed the reservation, by meter.
    pub above: Vec<(String, u64)>,
    /// Units that a rule did not charge, because its bucket goes no further into debt.
    pub uncharged: Vec<(String, u64)>,
}
