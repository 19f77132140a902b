//! Denials on their way to being counted, and the penalties that they bring.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tollgate_core::{Charge, Span, Time};
use tollgate_ruleset::PenaltyCharges;

/// Most denials that wait to be counted; further ones do not count.
pub(crate) const WAITING_MAX: usize = 4096;

/// A penalty that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Penalty {
    /// The namespace of the rule.
    pub namespace: String,
    /// The rule.
    pub rule: String,
    /// The client, as the observer names it.
    pub client: String,
    /// The bucket whose denials brought it.
    pub bucket: Charge,
    /// How many penalties of this bucket are remembered, this one included.
    pub number: u64,
    /// When it began, by the wall clock of this node.
    pub begun: Time,
    /// How long it lasts.
    pub lasts: Span,
}

/// A denial that waits to be counted.
#[derive(Debug)]
pub(crate) struct CountedDenial {
    pub(crate) namespace: String,
    pub(crate) rule: String,
    pub(crate) client: String,
    pub(crate) bucket: Charge,
    pub(crate) charges: PenaltyCharges,
}

/// Denials that wait to be counted.
#[derive(Debug, Default)]
pub(crate) struct DenialQueue {
    pub(crate) waiting: Mutex<VecDeque<CountedDenial>>,
    pub(crate) added: Notify,
}
