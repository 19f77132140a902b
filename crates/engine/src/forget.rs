//! Forgetting usage, for operators.

use std::collections::BTreeSet;

use tollgate_core::{Charge, Request};
use tollgate_ruleset::{Charges, Rule, RuleId};
use tollgate_store::{Store, StoreError};

use crate::Engine;

impl<S: Store> Engine<S> {
    /// Forgets all usage of the buckets that `request` would be charged to, including all shards of a rule. For
    /// operators.
    pub async fn forget(&self, request: &Request<'_>) -> Result<(), StoreError> {
        self.forget_of(request, |_| true).await.map(drop)
    }

    /// The same for the rules that are wanted. Returns the names of those whose buckets were forgotten.
    pub async fn forget_of(
        &self,
        request: &Request<'_>,
        is_wanted: impl Fn(&Rule) -> bool,
    ) -> Result<Vec<String>, StoreError> {
        let (buckets, names) = {
            let pinned = self.generations.pin();
            let shards = pinned.rules.rules().iter().map(|rule| rule.shards()).max().unwrap_or(1);
            let (mut buckets, mut rules): (Vec<Charge>, BTreeSet<RuleId>) = Default::default();
            for shard in 0..shards {
                let mut charges = Charges::default();
                charges.random = shard;
                charges.identities = self.store.is_shared();
                if pinned.rules.charges(request, self.wall(), &mut charges).is_err() {
                    return Ok(Vec::new());
                }
                for applied in &charges.applied {
                    let charge = applied.charge.and_then(|place| charges.charges.get(usize::from(place)));
                    let is_wanted = pinned.rules.rule(applied.rule).is_some_and(&is_wanted);
                    if let Some(charge) = charge.filter(|_| is_wanted) {
                        buckets.push(*charge);
                        rules.insert(applied.rule);
                    }
                }
            }
            let names = rules.into_iter().filter_map(|rule| Some(pinned.rules.rule(rule)?.name.clone()));
            let names: Vec<String> = names.collect();
            (buckets, names)
        };
        let mut buckets = buckets;
        buckets.sort_unstable_by_key(|charge| charge.bucket);
        buckets.dedup_by_key(|charge| charge.bucket);
        self.store.forget(&buckets).await.map(|()| names)
    }
}
