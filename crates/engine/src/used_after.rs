//! The usage of a bucket that requests decided together share, as if they had come one after the other.

use crate::{Decision, Ruling};

impl Decision {
    /// Units in use after the request of `ruling`, as if the requests decided together had come one after the other:
    /// without the charges of later requests on the same bucket. `cost` returns the units charged for a request. `None`
    /// if nothing was counted.
    ///
    /// For rules that [count denied requests](tollgate_rules::RuleSpec::count_denied): they charge every request.
    pub fn used_after(&self, ruling: &Ruling, cost: impl Fn(u16) -> u64) -> Option<u64> {
        let shares = |other: &&Ruling| other.bucket == ruling.bucket && other.request > ruling.request;
        let later = self.rulings().iter().filter(shares).map(|other| cost(other.request));
        let later = later.fold(0, u64::saturating_add);
        ruling.outcome.filter(|_| ruling.bucket.is_some()).map(|outcome| outcome.used.saturating_sub(later))
    }
}
