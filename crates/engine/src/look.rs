//! Looks: what a decision would be, without a charge.

use smallvec::SmallVec;
use tollgate_core::{Purpose, Request};
use tollgate_ruleset::Charges;
use tollgate_store::{Outcomes, Store};

use crate::conclude::conclude;
use crate::{Decision, Engine, Pinned};

impl<S: Store> Engine<S> {
    /// What [`decide`](Engine::decide) would return. Charges nothing and does not call the observer.
    pub async fn look(&self, request: &Request<'_>) -> Decision {
        let looks = looks_at(std::slice::from_ref(request));
        let mut charges = Charges::default();
        let pinned = self.generations.pin();
        match self.charges(&pinned, &looks, &mut charges) {
            Ok(()) => self.decide_charges(pinned, &looks, &mut charges).await,
            Err(skipped) => self.decide_skipped(pinned, skipped),
        }
    }

    /// Decides charges that are computed, waiting for the store up to the deadline. Does not call the observer.
    pub(crate) async fn decide_charges(
        &self,
        pinned: Pinned,
        requests: &[Request<'_>],
        charges: &mut Charges,
    ) -> Decision {
        let mut outcomes = Outcomes::new();
        match self.take(charges, &mut outcomes).await {
            Ok(taken) => {
                let taken = self.ask_other_shards(&pinned, requests, charges, &mut outcomes, taken).await;
                conclude(pinned, charges, taken, &outcomes)
            }
            Err(error) => {
                self.merge_shards(&pinned, requests, charges);
                self.fall_back(pinned, charges, &error).decision
            }
        }
    }
}

/// The same requests, which only read.
pub(crate) fn looks_at<'a>(requests: &[Request<'a>]) -> SmallVec<[Request<'a>; 4]> {
    let mut looks: SmallVec<[Request<'a>; 4]> = SmallVec::from_slice(requests);
    looks.iter_mut().filter(|look| look.purpose != Purpose::Mention).for_each(|look| *look = look.peek());
    looks
}
