//! What requests decided together put into a bucket that they share, one after the other.

use crate::{Decision, Ruling};

impl Decision {
    /// Units in use right after the request of `ruling`, as if those decided together had come one after the other: what
    /// later ones put into the same bucket is left out. `cost` tells what each request was charged. `None` if nothing
    /// was counted.
    ///
    /// For rules that [count what they refuse](tollgate_rules::RuleSpec::count_denied): with them, everybody was charged.
    pub fn used_after(&self, ruling: &Ruling, cost: impl Fn(u16) -> u64) -> Option<u64> {
        let shares = |other: &&Ruling| other.bucket == ruling.bucket && other.request > ruling.request;
        let later = self.rulings().iter().filter(shares).map(|other| cost(other.request));
        let later = later.fold(0, u64::saturating_add);
        ruling.outcome.filter(|_| ruling.bucket.is_some()).map(|outcome| outcome.used.saturating_sub(later))
    }
}
