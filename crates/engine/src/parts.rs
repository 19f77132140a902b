//! Rules with `shards`: a request that one part refuses asks the others before it is refused.
//!
//! All other parts are looked at in one call that charges nothing. If one has room, the request is charged there, in a
//! second call; if none has, the caller is told the shortest of their waits, and after that wait the same look finds the
//! part that has room by then. So the hint is true, whichever part the next request meets first.
//!
//! Slots are found again by their id, which names their part; charges that count refusals have been recorded where they
//! were refused. Both stay where they are.

use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::timeout;
use tollgate_core::{Ask, Charge, Limit, Outcome, Request, Wait};
use tollgate_rules::ruleset::Charges;
use tollgate_store::{Outcomes, Store, StoreError, Taken};

use crate::{Engine, EngineConfig, Pinned};

/// Parts that are looked at, the first one included: a call of more would keep the store from everybody else.
const LOOKS_MAX: u64 = 64;

/// Times that the parts are looked at for one request. Each time after the first, others were admitted meanwhile.
const ROUNDS_MAX: usize = 8;

/// The parts that could admit what others refused.
#[derive(Debug, Default)]
struct Parts {
    /// What is asked of each, without charging it.
    looks: Vec<Charge>,
    /// The place of each among the charges of the request.
    places: Vec<usize>,
}

impl<S: Store> Engine<S> {
    /// The verdict after other parts were asked, where that may help. `None`: the store has to be waited for.
    #[inline]
    pub(crate) fn try_other_parts(
        &self,
        pinned: &Pinned,
        requests: &[Request<'_>],
        charges: &mut Charges,
        outcomes: &mut Outcomes,
        taken: Taken,
    ) -> Option<Taken> {
        let Some(parts) = self.other_parts(pinned, requests, charges, outcomes, taken) else { return Some(taken) };
        let mut last = taken;
        for _ in 0..ROUNDS_MAX {
            let mut seen = Outcomes::new();
            let _ = self.store.try_take(&parts.looks, &mut seen)?;
            if !parts.choose(&seen, charges, outcomes) {
                break;
            }
            last = self.store.try_take(&charges.charges, outcomes)?;
            if last.allowed {
                break;
            }
        }
        Some(last)
    }

    /// The verdict after other parts were asked, where that may help.
    pub(crate) async fn ask_other_parts(
        &self,
        pinned: &Pinned,
        requests: &[Request<'_>],
        charges: &mut Charges,
        outcomes: &mut Outcomes,
        taken: Taken,
    ) -> Taken {
        match self.other_parts(pinned, requests, charges, outcomes, taken) {
            None => taken,
            // Boxed: rare and large, and whatever waits for the store would carry it around.
            Some(parts) => Box::pin(self.ask_parts_in_time(parts, charges, outcomes, taken)).await,
        }
    }

    async fn ask_parts_in_time(
        &self,
        parts: Parts,
        charges: &mut Charges,
        outcomes: &mut Outcomes,
        taken: Taken,
    ) -> Taken {
        let EngineConfig { within, deadline, .. } = self.config;
        let left = Duration::from(deadline).saturating_sub(within.into());
        let first = (charges.charges.clone(), outcomes.clone());
        let asked = timeout(left, self.ask_parts(&parts, charges, outcomes)).await;
        match asked {
            Ok(Ok(again)) => again.unwrap_or(taken),
            // A store that fails now has refused already: that stands.
            Ok(Err(_)) | Err(_) => {
                (charges.charges, *outcomes) = first;
                taken
            }
        }
    }

    /// Looks at the parts and charges what they have room for; `None` if that is not enough. Where that
    /// room is taken by another request between the look and the charge, it looks again.
    async fn ask_parts(
        &self,
        parts: &Parts,
        charges: &mut Charges,
        outcomes: &mut Outcomes,
    ) -> Result<Option<Taken>, StoreError> {
        let mut last = None;
        for _ in 0..ROUNDS_MAX {
            let mut seen = Outcomes::new();
            let _ = self.ask(&parts.looks, &mut seen).await?;
            if !parts.choose(&seen, charges, outcomes) {
                break;
            }
            let taken = self.ask(&charges.charges, outcomes).await?;
            last = Some(taken);
            if taken.allowed {
                break;
            }
        }
        Ok(last)
    }

    /// The other parts of all rules that refused; `None` if there are none to be asked.
    fn other_parts(
        &self,
        pinned: &Pinned,
        requests: &[Request<'_>],
        charges: &Charges,
        outcomes: &[Outcome],
        taken: Taken,
    ) -> Option<Parts> {
        if taken.allowed || charges.charges.iter().any(|charge| charge.count_denied) {
            return None;
        }
        let refused = charges.applied.iter().filter_map(|applied| {
            let (rule, place) = (pinned.rules.rule(applied.rule)?, usize::from(applied.charge?));
            let (charge, outcome) = (charges.charges.get(place)?, outcomes.get(place)?);
            (rule.parts() > 1 && refuses(charge, outcome) && is_movable(charge)).then_some((place, rule.parts()))
        });
        let mut refused: SmallVec<[(usize, u64); 4]> = refused.collect();
        refused.sort_unstable();
        refused.dedup();
        let most = refused.iter().map(|(_, parts)| *parts).max()?.min(LOOKS_MAX);
        let (mut parts, mut other) = (Parts::default(), Charges::default());
        for step in 1..most {
            other.clear();
            self.charges_by_lot(pinned, requests, charges.random.wrapping_add(step), &mut other).ok()?;
            for (place, count) in &refused {
                let (first, part) = (charges.charges.get(*place)?, other.charges.get(*place)?);
                if step < *count {
                    let (ask, sharing) = (Ask::Peek(first.ask.cost()), first.sharing);
                    parts.looks.push(Charge { ask, sharing, ..*part });
                    parts.places.push(*place);
                }
            }
        }
        Some(parts)
    }
}

impl Parts {
    /// Puts the best part of each rule into the charges and its outcome into the outcomes; true if then nothing refuses
    /// any more.
    fn choose(&self, seen: &[Outcome], charges: &mut Charges, outcomes: &mut Outcomes) -> bool {
        for ((look, place), new) in self.looks.iter().zip(&self.places).zip(seen) {
            let Some((charge, outcome)) = charges.charges.get_mut(*place).zip(outcomes.get_mut(*place)) else {
                continue;
            };
            if rank(new) < rank(outcome) {
                *charge = Charge { ask: charge.ask, ..*look };
                *outcome = *new;
            }
        }
        !charges.charges.iter().zip(outcomes.iter()).any(|(charge, outcome)| refuses(charge, outcome))
    }
}

/// The most room first, then the shortest wait.
fn rank(outcome: &Outcome) -> (bool, u64) {
    match (outcome.allowed, outcome.wait) {
        (true, _) => (false, u64::MAX - outcome.remaining),
        (false, Wait::For(span)) => (true, span.nanos()),
        (false, _) => (true, u64::MAX),
    }
}

fn refuses(charge: &Charge, outcome: &Outcome) -> bool {
    charge.is_enforced() && !outcome.allowed
}

fn is_movable(charge: &Charge) -> bool {
    matches!(charge.ask, Ask::Consume(_) | Ask::Peek(_)) && !matches!(charge.limit, Limit::Concurrency(_))
}
