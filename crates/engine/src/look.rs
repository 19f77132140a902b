//! Looks: what a decision would be, without a charge.

use smallvec::SmallVec;
use tollgate_core::{Purpose, Request};
use tollgate_ruleset::Charges;
use tollgate_store::{Outcomes, Store};

use crate::engine::conclude;
use crate::{Decision, Engine};

impl<S: Store> Engine<S> {
    /// What [`decide`](Engine::decide) would return. Charges nothing and does not call the observer.
    pub async fn look(&self, request: &Request<'_>) -> Decision {
        self.look_at_all(std::slice::from_ref(request)).await
    }

    /// What [`decide_all`](Engine::decide_all) would return. Charges nothing and does not call the observer.
    pub async fn look_at_all(&self, requests: &[Request<'_>]) -> Decision {
        let mut looks: SmallVec<[Request<'_>; 4]> = SmallVec::from_slice(requests);
        looks.iter_mut().filter(|look| look.purpose != Purpose::Mention).for_each(|look| *look = look.peek());
        let mut charges = Charges::default();
        let pinned = self.generations.pin();
        let mut outcomes = Outcomes::new();
        match self.charges(&pinned, &looks, &mut charges) {
            Err(skipped) => self.decide_skipped(pinned, skipped),
            Ok(()) => match self.take(&charges, &mut outcomes).await {
                Ok(taken) => {
                    let taken = self.ask_other_shards(&pinned, &looks, &mut charges, &mut outcomes, taken).await;
                    conclude(pinned, &charges, taken, &outcomes)
                }
                Err(error) => {
                    self.merge_shards(&pinned, &looks, &mut charges);
                    self.fall_back(pinned, &charges, &error).decision
                }
            },
        }
    }
}
