//! Forgetting usage, for operators.

use std::collections::BTreeSet;

use tollgate_core::{Charge, Request};
use tollgate_ruleset::{Charges, Rule, RuleId};
use tollgate_store::{Store, StoreError};

use crate::Engine;

/// The buckets that a request would be charged to.
#[derive(Clone, Debug, Default)]
pub struct RequestCounters {
    buckets: Vec<Charge>,
    /// The names of their rules.
    pub rules: Vec<String>,
}

impl<S: Store> Engine<S> {
    /// Forgets all usage of the buckets that `request` would be charged to, including all shards of a rule. For
    /// operators.
    pub async fn forget(&self, request: &Request<'_>) -> Result<(), StoreError> {
        self.forget_counters(&self.counters_of(request, |_| true)).await
    }

    /// The buckets of the rules that are wanted, including all shards of a rule; none for an invalid request.
    pub fn counters_of(&self, request: &Request<'_>, is_wanted: impl Fn(&Rule) -> bool) -> RequestCounters {
        let pinned = self.generations.pin();
        let shards = pinned.rules.rules().iter().map(|rule| rule.shards()).max().unwrap_or(1);
        let (mut buckets, mut rules): (Vec<Charge>, BTreeSet<RuleId>) = Default::default();
        for shard in 0..shards {
            let mut charges = Charges::default();
            charges.random = shard;
            charges.identities = self.store.is_shared();
            if pinned.rules.charges(request, self.wall(), &mut charges).is_err() {
                return RequestCounters::default();
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
        buckets.sort_unstable_by_key(|charge| charge.bucket);
        buckets.dedup_by_key(|charge| charge.bucket);
        let rules = rules.into_iter().filter_map(|rule| Some(pinned.rules.rule(rule)?.name.clone()));
        RequestCounters { buckets, rules: rules.collect() }
    }

    /// Forgets all usage of these buckets.
    pub async fn forget_counters(&self, counters: &RequestCounters) -> Result<(), StoreError> {
        self.store.forget(&counters.buckets).await
    }
}
