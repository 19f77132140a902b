//! From the outcomes of the store to the decision.

use smallvec::SmallVec;
use tollgate_core::{Outcome, Span};
use tollgate_ruleset::Charges;
use tollgate_store::Taken;

use crate::decision::{DecidedBy, Decision, Ruling, Verdict, deciding};
use crate::{Pinned, random};

/// The decision from the outcomes of the store. Inlined into every caller: a decision is large, and would be copied.
#[inline(always)]
pub(crate) fn conclude(generation: Pinned, charges: &Charges, taken: Taken, outcomes: &[Outcome]) -> Decision {
    let mut decided_by = DecidedBy::Store;
    let mut rulings: SmallVec<[Ruling; 4]> = SmallVec::new();
    for applied in &charges.applied {
        let place = applied.charge.map(usize::from);
        let outcome = place.and_then(|place| outcomes.get(place));
        let penalty = applied.penalty.and_then(|place| outcomes.get(usize::from(place)));
        let penalty = penalty.filter(|penalty| !penalty.allowed);
        let limit = place.and_then(|place| charges.charges.get(place)).map(|charge| &charge.limit);
        let (requests, window) = limit.map_or((0, Span::ZERO), |limit| (limit.requests(), limit.window()));
        let own = outcome.map_or(DecidedBy::Store, |outcome| DecidedBy::from(outcome.source));
        let enforced = generation.rules.rule(applied.rule).is_some_and(|rule| charges.enforces(rule));
        decided_by = decided_by.max(own);
        rulings.push(Ruling {
            rule: applied.rule,
            request: applied.request,
            enforced,
            decided_by: own,
            outcome: match penalty {
                None => outcome.copied(),
                Some(penalty) => outcome.map(|outcome| refused_by(outcome, penalty)),
            },
            requests,
            window,
            penalised: penalty.is_some(),
            bucket: applied.charge,
        });
    }
    Decision {
        verdict: if taken.allowed { Verdict::Allow } else { Verdict::Deny },
        decided_by,
        now: taken.now,
        wall: taken.wall,
        deciding: deciding(&rulings, taken.allowed),
        rulings,
        generation,
        nonce: nonce_of(charges),
    }
}

/// The random number of the charges; the steps of a reservation have none.
#[inline]
pub(crate) fn nonce_of(charges: &Charges) -> u64 {
    if charges.random == 0 { random::fast() } else { charges.random }
}

/// The outcome of a bucket whose client has a penalty: the end of that is when anything passes again.
#[cold]
fn refused_by(outcome: &Outcome, penalty: &Outcome) -> Outcome {
    let Outcome { wait, reset_after, .. } = *penalty;
    let next_unit_after = wait.span();
    Outcome { allowed: false, remaining: 0, granted: 0, wait, reset_after, next_unit_after, ..*outcome }
}
