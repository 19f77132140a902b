//! Refunds without a receipt: an application reports usage that did not happen after all.
//!
//! Settling a receipt gives back exactly what its charge still owes. Without a receipt the charge is unknown, so at
//! most the units in use are given back: a bucket is never filled above its limit. A log identifies its units by time
//! and refunds nothing without a receipt; slots are released, not refunded.

use smallvec::SmallVec;
use tollgate_core::{Digest, Limit, Receipt, Request, Sharing, Time};
use tollgate_ruleset::Charges;
use tollgate_store::{Outcomes, Store, StoreError};

use crate::conclude::conclude;
use crate::look::looks_at;
use crate::{Decision, Engine, Pinned, Settlement};

impl<S: Store> Engine<S> {
    /// Gives the cost of every request back to the buckets that it would be charged to. Returns the decision of a
    /// read-only request afterwards.
    ///
    /// Reading and refunding are two steps: of two refunds at the same instant each gives back its units, and a refund
    /// after the end of a window gives back nothing.
    pub async fn refund(&self, requests: &[Request<'_>]) -> Result<Decision, StoreError> {
        let pinned = self.generations.pin();
        let mut charges = Charges::default();
        match self.charges(&pinned, &looks_at(requests), &mut charges) {
            Ok(()) => self.refund_charges(pinned, charges).await,
            Err(skipped) => Ok(self.decide_skipped(pinned, skipped)),
        }
    }

    /// Gives the cost of charges that only read back to their buckets.
    pub(crate) async fn refund_charges(&self, pinned: Pinned, mut charges: Charges) -> Result<Decision, StoreError> {
        for charge in &mut charges.charges {
            // Refunds go to the bucket that all nodes share, not to units that a node holds in advance.
            if matches!(charge.sharing, Sharing::Leased(_) | Sharing::Async) {
                charge.sharing = Sharing::Exact;
            }
        }
        // A refund of usage is none of a penalty.
        let penalties: SmallVec<[Digest; 4]> = charges
            .applied
            .iter()
            .filter_map(|applied| charges.charges.get(usize::from(applied.penalty?)))
            .map(|charge| charge.bucket)
            .collect();
        let mut outcomes = Outcomes::new();
        let _ = self.take(&charges, &mut outcomes).await?;
        let asked = charges.charges.iter().zip(&outcomes);
        let back: SmallVec<[Receipt; 4]> = asked
            .filter(|(charge, _)| !matches!(charge.limit, Limit::Concurrency(_) | Limit::SlidingLog(_)))
            .filter(|(charge, _)| !penalties.contains(&charge.bucket))
            .map(|(charge, outcome)| Receipt { units: charge.ask.cost(), ..Receipt::of(charge, outcome) })
            .collect();
        if !back.is_empty() {
            let given = self.store.give_back(&back).await;
            self.observe_refund(&back, given.as_ref());
            given?;
            outcomes.clear();
        }
        let taken = self.take(&charges, &mut outcomes).await?;
        Ok(conclude(pinned, &charges, taken, &outcomes))
    }

    /// How much was given back is not known: at most the units in use were.
    fn observe_refund(&self, back: &[Receipt], given: Result<&usize, &StoreError>) {
        let mut settlement = Settlement::new(self.rules(), None, Time::ZERO, false);
        settlement.refunded(back, given);
        settlement.corrections.iter_mut().for_each(|correction| correction.is_certain = false);
        self.observe_settlement(settlement);
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Attribute, ManualClock, Span, Time};

    use super::*;
    use crate::rules_from_yaml;

    fn rules(algorithm: &str) -> String {
        format!(
            "rules: [{{ name: r, key_by: user_id, limit: {{ requests: 10, window: 10s, algorithm: {algorithm} }} }}]"
        )
    }

    #[tokio::test]
    async fn gives_back_what_is_in_use_and_never_more() {
        for algorithm in ["token_bucket", "fixed_window", "sliding_window"] {
            let clock = ManualClock::at(Time::from_secs(1_700_000_000));
            let engine = Engine::on_clock(rules_from_yaml(&rules(algorithm)).unwrap(), clock.clone());
            let request = Request::new().with(Attribute::UserId, "1");
            let left = |decision: &Decision| decision.remaining();
            assert_eq!(left(&engine.decide(&request.cost(7)).await), Some(3), "{algorithm}");
            assert_eq!(left(&engine.refund(&[request.cost(2)]).await.unwrap()), Some(5), "{algorithm}");
            assert_eq!(left(&engine.refund(&[request.cost(u64::MAX)]).await.unwrap()), Some(10), "{algorithm}");
            assert_eq!(left(&engine.decide(&request.cost(10)).await), Some(0), "{algorithm}");
            assert!(!engine.decide(&request).await.is_allowed(), "{algorithm}: a refund makes no room above the limit");
            clock.advance(Span::from_secs(30));
            assert_eq!(left(&engine.refund(&[request.cost(5)]).await.unwrap()), Some(10), "{algorithm}: all is back");
        }
    }

    #[tokio::test]
    async fn a_log_refunds_nothing_without_a_receipt() {
        let clock = ManualClock::at(Time::from_secs(1_700_000_000));
        let engine = Engine::on_clock(rules_from_yaml(&rules("sliding_window_log")).unwrap(), clock);
        let request = Request::new().with(Attribute::UserId, "1");
        let _ = engine.decide(&request.cost(7)).await;
        assert_eq!(engine.refund(&[request.cost(2)]).await.unwrap().remaining(), Some(3));
    }
}
