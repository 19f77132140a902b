//! The model of a store: a map from digest to state, and DESIGN's "What a decision means" spelled out over it.
//!
//! One thread, no bound on memory, nothing is ever dropped. A real store may shard, sweep and pack its entries; its
//! outcomes must equal these.

use std::collections::HashMap;

use tollgate_core::{Ask, Charge, Digest, Effect, Outcome, SlotId, Time};

use crate::{Bucket, Subject};

/// Every bucket ever touched.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    buckets: HashMap<Digest, Bucket>,
}

impl Reference {
    /// The state of a bucket; unused if it was never touched.
    pub fn bucket(&self, charge: &Charge) -> Bucket {
        let unused = || Bucket::unused(charge.limit.kind());
        self.buckets.get(&charge.bucket).cloned().unwrap_or_else(unused)
    }

    fn bucket_mut(&mut self, charge: &Charge) -> &mut Bucket {
        self.buckets.entry(charge.bucket).or_insert_with(|| Bucket::unused(charge.limit.kind()))
    }

    fn admits(&self, now: Time, charge: &Charge) -> bool {
        self.bucket(charge).admits(&charge.limit_at(now), now, &charge.ask)
    }

    /// Decides and records a soft charge under its raised limit, and reports it under its own.
    fn apply(&mut self, now: Time, charge: &Charge, admits: bool, passes: bool) -> Outcome {
        let (limit, ask) = (charge.limit_at(now), &charge.ask);
        let bucket = self.bucket_mut(charge);
        let granted = if ask.writes() { bucket.record(&limit, now, ask, effect(charge, admits, passes)) } else { 0 };
        let outcome = bucket.view(&charge.limit, now, ask, admits, granted);
        let counted = charge.count_denied && admits && !passes && granted > 0; // another charge refused the request
        match counted && !bucket.admits(&charge.limit, now, ask) {
            true => Outcome { wait: bucket.view(&charge.limit, now, ask, false, granted).wait, ..outcome },
            false => outcome,
        }
    }
}

/// The effect of one charge, given whether it admits the request and whether the request passes as a whole.
fn effect(charge: &Charge, admits: bool, passes: bool) -> Effect {
    match charge.ask {
        Ask::Force(_) => Effect::Force,
        _ if passes && admits => Effect::Charge,
        _ if charge.count_denied => Effect::Force,
        _ => Effect::Refuse,
    }
}

impl Subject for Reference {
    fn take(&mut self, now: Time, charges: &[Charge]) -> Vec<Outcome> {
        let admits: Vec<bool> = charges.iter().map(|charge| self.admits(now, charge)).collect();
        let passes = charges.iter().zip(&admits).all(|(charge, admits)| *admits || !charge.is_enforced());
        let each = charges.iter().zip(admits);
        each.map(|(charge, admits)| self.apply(now, charge, admits, passes)).collect()
    }

    fn refund(&mut self, now: Time, charge: &Charge, units: u64, stamp: Option<Time>) {
        let limit = charge.limit_at(now);
        self.bucket_mut(charge).refund(&limit, now, units, stamp);
    }

    fn release(&mut self, now: Time, charge: &Charge, id: SlotId) -> bool {
        self.bucket_mut(charge).release(&charge.limit, now, id)
    }
}
