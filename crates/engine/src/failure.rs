//! When the store does not answer, the failure policy of each rule decides.
//!
//! One rule with `deny` denies the request. Rules with `local` are evaluated in this process, each with this node's
//! share of its limit, all or nothing. Rules with `allow` are not evaluated. Rules with shards are evaluated as if they
//! had none: rounding the share of each shard up would give the node more than its share of the whole (P13).

use smallvec::SmallVec;
use tollgate_core::{Charge, Request, Soft, Span};
use tollgate_rules::OnFail;
use tollgate_ruleset::{AppliedRule, Charges};
use tollgate_store::{Outcomes, Store, StoreError, Taken};

use crate::conclude::nonce_of;
use crate::decision::{DecidedBy, Decision, Ruling, Verdict, deciding};
use crate::{Engine, Pinned};

/// A decision made without the store, with the charges on this node's fallback buckets.
pub(crate) struct FallbackDecision {
    pub(crate) decision: Decision,
    pub(crate) charges: SmallVec<[Charge; 4]>,
    pub(crate) outcomes: Outcomes,
}

impl<S: Store> Engine<S> {
    /// Recomputes the charges so that rules with shards use one bucket with the whole limit. True if there were any.
    pub(crate) fn merge_shards(&self, pinned: &Pinned, requests: &[Request<'_>], charges: &mut Charges) -> bool {
        let rules = charges.applied.iter().filter_map(|applied| pinned.rules.rule(applied.rule));
        if charges.whole || !rules.into_iter().any(|rule| rule.shards() > 1) {
            return false;
        }
        let mut whole = Charges::default();
        whole.whole = true;
        let divided = self.charges_with_shard(pinned, requests, charges.random, &mut whole).is_ok();
        if divided {
            *charges = whole;
        }
        divided
    }

    pub(crate) fn fall_back(&self, generation: Pinned, charges: &Charges, error: &StoreError) -> FallbackDecision {
        if let Some(observer) = &self.observer {
            observer.store_failed(error, &charges.charges, self.wall());
        }
        let policies = Policies::of(&generation, charges);
        let mut local: SmallVec<[Charge; 4]> =
            policies.local(charges, self.store.nodes().unwrap_or(self.config.nodes)).collect();
        let mut outcomes = Outcomes::new();
        let Taken { allowed: admitted, now, wall } = match policies.refuse() {
            true => {
                local.clear();
                Taken { allowed: false, ..self.allow_now() }
            }
            false => self.fallback.take_now(&local, &mut outcomes),
        };
        let mut rulings: SmallVec<[Ruling; 4]> = SmallVec::new();
        for applied in &charges.applied {
            let enforced = generation.rules.rule(applied.rule).is_some_and(|rule| charges.enforces(rule));
            let decided_by = policies.decided_by(applied);
            let bucket = applied.charge.and_then(|place| charges.charges.get(usize::from(place)));
            let place = bucket.and_then(|own| local.iter().position(|charge| charge.bucket == own.bucket));
            let outcome = place.and_then(|place| outcomes.get(place).copied());
            let asked = place.and_then(|place| local.get(place)).or(bucket);
            let (requests, window) =
                asked.map_or((0, Span::ZERO), |charge| (charge.limit.requests(), charge.limit.window()));
            rulings.push(Ruling {
                rule: applied.rule,
                request: applied.request,
                enforced,
                decided_by,
                outcome,
                requests,
                window,
                penalised: false,
                bucket: applied.charge,
            });
        }
        let enforced = rulings.iter().filter(|ruling| ruling.enforced).map(|ruling| ruling.decided_by);
        let decision = Decision {
            verdict: if admitted { Verdict::Allow } else { Verdict::Deny },
            decided_by: enforced.max().unwrap_or(DecidedBy::Open), // shadow rules only show in their own rulings
            now,
            wall,
            deciding: deciding(&rulings, admitted),
            rulings,
            generation,
            nonce: nonce_of(charges),
        };
        FallbackDecision { decision, charges: local, outcomes }
    }
}

/// The failure policy of each charge, and whether it is enforced. A bucket shared by two rules gets the stricter
/// policy.
struct Policies(SmallVec<[(OnFail, bool); 16]>);

impl Policies {
    fn of(generation: &Pinned, charges: &Charges) -> Policies {
        let mut policies = Policies(SmallVec::from_elem((OnFail::Allow, false), charges.charges.len()));
        for applied in &charges.applied {
            let rule = generation.rules.rule(applied.rule);
            let place = applied.charge.and_then(|place| policies.0.get_mut(usize::from(place)));
            if let (Some(rule), Some((policy, enforced))) = (rule, place) {
                *policy = stricter(*policy, rule.on_fail);
                *enforced |= charges.enforces(rule);
            }
        }
        policies
    }

    fn refuse(&self) -> bool {
        self.0.iter().any(|(policy, enforced)| *policy == OnFail::Deny && *enforced)
    }

    fn local<'a>(&'a self, charges: &'a Charges, nodes: u64) -> impl Iterator<Item = Charge> + 'a {
        let all = charges.charges.iter().zip(&self.0);
        all.filter(|(_, (policy, _))| *policy == OnFail::Local).map(move |(charge, _)| {
            let soft = charge.soft.map(|soft| Soft { excess: soft.excess.div_ceil(nodes.max(1)), ..soft });
            Charge { limit: charge.limit.share(nodes), soft, ..*charge }
        })
    }

    fn decided_by(&self, applied: &AppliedRule) -> DecidedBy {
        let policy = applied.charge.and_then(|place| self.0.get(usize::from(place)));
        match policy {
            Some((OnFail::Deny, _)) => DecidedBy::Closed,
            Some((OnFail::Local, _)) => DecidedBy::Fallback,
            Some((OnFail::Allow, _)) | None => DecidedBy::Open,
        }
    }
}

fn stricter(a: OnFail, b: OnFail) -> OnFail {
    match (a, b) {
        (OnFail::Deny, _) | (_, OnFail::Deny) => OnFail::Deny,
        (OnFail::Local, _) | (_, OnFail::Local) => OnFail::Local,
        _ => OnFail::Allow,
    }
}
