//! Rules with `shards`: a request that one shard refuses tries the others before it is denied.
//!
//! One call reads all other shards without charging. If one has room, a second call charges the request there; if none
//! has, the outcome is the shortest of their waits, and after that wait the same read finds the shard with room. So the
//! reported wait is sufficient, whichever shard the next request tries first.
//!
//! Slots are found by their id, which selects their shard; charges that count denied requests were recorded where they
//! were refused. Neither moves to another shard.

use std::time::Duration;

use smallvec::SmallVec;
use tokio::time::timeout;
use tollgate_core::{Ask, Charge, Limit, Outcome, Request, Wait};
use tollgate_ruleset::Charges;
use tollgate_store::{Outcomes, Store, StoreError, Taken};

use crate::{Engine, EngineConfig, Pinned};

/// Shards that are read, the first one included: a larger call would block the store for other requests.
const LOOKS_MAX: u64 = 64;

/// How often the shards are read for one request. Each time after the first, other requests took the room in between.
const ROUNDS_MAX: usize = 8;

/// The shards that could admit what the first ones refused.
#[derive(Debug, Default)]
struct OtherShards {
    /// A read-only charge for each.
    looks: Vec<Charge>,
    /// The index of each among the charges of the request.
    places: Vec<usize>,
}

impl<S: Store> Engine<S> {
    /// The verdict after trying other shards, where that may help. `None`: the store needs an asynchronous call.
    #[inline]
    pub(crate) fn try_other_shards(
        &self,
        pinned: &Pinned,
        requests: &[Request<'_>],
        charges: &mut Charges,
        outcomes: &mut Outcomes,
        taken: Taken,
    ) -> Option<Taken> {
        if taken.allowed {
            return Some(taken); // before a call, which the common path can do without
        }
        let Some(parts) = self.other_shards(pinned, requests, charges, outcomes, taken) else { return Some(taken) };
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

    /// The verdict after trying other shards, where that may help.
    pub(crate) async fn ask_other_shards(
        &self,
        pinned: &Pinned,
        requests: &[Request<'_>],
        charges: &mut Charges,
        outcomes: &mut Outcomes,
        taken: Taken,
    ) -> Taken {
        match self.other_shards(pinned, requests, charges, outcomes, taken) {
            None => taken,
            // Boxed: rare and large, and every future of a store call would contain it.
            Some(parts) => Box::pin(self.ask_shards_in_time(parts, charges, outcomes, taken)).await,
        }
    }

    async fn ask_shards_in_time(
        &self,
        parts: OtherShards,
        charges: &mut Charges,
        outcomes: &mut Outcomes,
        taken: Taken,
    ) -> Taken {
        let EngineConfig { within, deadline, .. } = self.config;
        let left = Duration::from(deadline).saturating_sub(within.into());
        let first = (charges.charges.clone(), outcomes.clone());
        let asked = timeout(left, self.ask_shards(&parts, charges, outcomes)).await;
        match asked {
            Ok(Ok(again)) => again.unwrap_or(taken),
            // The store has refused before it failed: that verdict stands.
            Ok(Err(_)) | Err(_) => {
                (charges.charges, *outcomes) = first;
                taken
            }
        }
    }

    /// Reads the shards and charges one with room; `None` if no shard has enough. Reads again if another request takes
    /// the room between the read and the charge.
    async fn ask_shards(
        &self,
        parts: &OtherShards,
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

    /// The other shards of all rules that refused; `None` if there are none to try.
    fn other_shards(
        &self,
        pinned: &Pinned,
        requests: &[Request<'_>],
        charges: &Charges,
        outcomes: &[Outcome],
        taken: Taken,
    ) -> Option<OtherShards> {
        if taken.allowed || charges.charges.iter().any(|charge| charge.count_denied) {
            return None;
        }
        let refused = charges.applied.iter().filter_map(|applied| {
            let (rule, place) = (pinned.rules.rule(applied.rule)?, usize::from(applied.charge?));
            let (charge, outcome) = (charges.charges.get(place)?, outcomes.get(place)?);
            (rule.shards() > 1 && refuses(charge, outcome) && is_movable(charge)).then_some((place, rule.shards()))
        });
        let mut refused: SmallVec<[(usize, u64); 4]> = refused.collect();
        refused.sort_unstable();
        refused.dedup();
        let most = refused.iter().map(|(_, parts)| *parts).max()?.min(LOOKS_MAX);
        let (mut parts, mut other) = (OtherShards::default(), Charges::default());
        for step in 1..most {
            other.clear();
            self.charges_with_shard(pinned, requests, charges.random.wrapping_add(step), &mut other).ok()?;
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

impl OtherShards {
    /// Replaces the charge and outcome of each rule by those of its best shard. True if no shard then refuses.
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

/// Orders shards: the most room first, then the shortest wait.
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
