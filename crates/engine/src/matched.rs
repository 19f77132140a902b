//! Requests that are matched against the rules once and decided in several decisions: a call whose requests ask different
//! things of one bucket, refunds, or asks what would be denied before it charges.

use tollgate_core::{Enforcement, Request};
use tollgate_ruleset::{Charges, RequestError, RuleSet};
use tollgate_store::{Outcomes, Store, StoreError};

use crate::conclude::conclude;
use crate::engine::{REQUESTS_MAX, Skipped};
use crate::look::looks_at;
use crate::{Decision, Engine, Pinned, random};

/// Requests with the charges of each, under one generation of rules. Nothing was charged.
#[derive(Debug)]
pub struct MatchedRequests {
    pinned: Pinned,
    charges: Charges,
}

impl MatchedRequests {
    /// The charges, those of each request apart.
    pub fn charges(&self) -> &Charges {
        &self.charges
    }

    /// The rules that they were matched against.
    pub fn rules(&self) -> &RuleSet {
        &self.pinned.rules
    }

    /// The generation of these rules.
    pub fn generation(&self) -> Pinned {
        self.pinned.again()
    }
}

/// A decision about matched requests takes all of them, in the same order: a mention is left out, a peek only reads.
impl<S: Store> Engine<S> {
    /// Matches requests, while limits are off too.
    pub fn match_all(&self, requests: &[Request<'_>]) -> Result<MatchedRequests, RequestError> {
        if requests.len() > REQUESTS_MAX {
            return Err(RequestError::too_many(REQUESTS_MAX));
        }
        let pinned = self.generations.pin();
        let mut charges = Charges::default();
        charges.separate = true;
        self.collect(&pinned, requests, random::fast(), &mut charges)?;
        Ok(MatchedRequests { pinned, charges })
    }

    /// Decides matched requests, if the store answers synchronously. `None` has charged nothing, and the observer is not
    /// called: the store has to be waited for, or the requests ask different things of one bucket.
    pub fn try_decide_matched(&self, matched: &MatchedRequests, requests: &[Request<'_>]) -> Option<Decision> {
        let mut charges = matched.charges.select(matched.rules(), requests).ok()?;
        let pinned = matched.generation();
        if self.enforcement() == Enforcement::Off {
            return Some(self.observed(requests, self.decide_skipped(pinned, Skipped::Off), &Charges::default()));
        }
        let mut outcomes = Outcomes::new();
        let taken = self.take_now(&charges, &mut outcomes)?;
        let taken = self.try_other_shards(&pinned, requests, &mut charges, &mut outcomes, taken)?;
        Some(self.observed(requests, conclude(pinned, &charges, taken, &outcomes), &charges))
    }

    /// Decides matched requests, waiting for the store up to the deadline.
    pub async fn decide_matched(&self, matched: &MatchedRequests, requests: &[Request<'_>]) -> Decision {
        let (decision, charges) = self.decide_selected(matched, requests).await;
        self.observed(requests, decision, &charges)
    }

    /// What [`decide_matched`](Engine::decide_matched) would return. Charges nothing and does not call the observer.
    pub async fn look_at_matched(&self, matched: &MatchedRequests, requests: &[Request<'_>]) -> Decision {
        self.decide_selected(matched, &looks_at(requests)).await.0
    }

    /// [`refund`](Engine::refund) of matched requests.
    pub async fn refund_matched(
        &self,
        matched: &MatchedRequests,
        requests: &[Request<'_>],
    ) -> Result<Decision, StoreError> {
        let pinned = matched.generation();
        match self.select(matched, &looks_at(requests)) {
            Ok(charges) => self.refund_charges(pinned, charges).await,
            Err(skipped) => Ok(self.decide_skipped(pinned, skipped)),
        }
    }

    async fn decide_selected(&self, matched: &MatchedRequests, requests: &[Request<'_>]) -> (Decision, Charges) {
        let pinned = matched.generation();
        match self.select(matched, requests) {
            Ok(mut charges) => (self.decide_charges(pinned, requests, &mut charges).await, charges),
            Err(skipped) => (self.decide_skipped(pinned, skipped), Charges::default()),
        }
    }

    fn select(&self, matched: &MatchedRequests, requests: &[Request<'_>]) -> Result<Charges, Skipped> {
        match self.enforcement() {
            Enforcement::Off => Err(Skipped::Off),
            _ => Ok(matched.charges.select(matched.rules(), requests)?),
        }
    }

    fn observed(&self, requests: &[Request<'_>], decision: Decision, charges: &Charges) -> Decision {
        self.observe(requests, &decision, &charges.charges);
        decision
    }
}
