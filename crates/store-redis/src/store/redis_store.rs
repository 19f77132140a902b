//! The store that a fleet shares.
//!
//! A script can access one slot of a cluster. Charges of one identity share a slot and are decided at once; a request
//! that also has charges of other identities, such as a global limit, is decided slot by slot. The narrowest limit
//! comes first: it denies most often, and a denial there costs the shared buckets nothing. In the opposite order, every
//! denied request would be charged to a bucket that others use, and refunded.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::{Ask, Charge, Clock, Outcome, Receipt, Source, Span, Time};
use tollgate_store::{Outcomes, Store, StoreError, StoreErrorKind, Taken};

use super::budget::Budget;
use super::key::BucketKey;
use super::primary::Primary;
use super::primary::memory::MemoryLevel;
use super::script::{ScriptAnswer, ScriptRequest};
use super::stats::SlotCounters;
use crate::client::config::RedisConfig;
use crate::client::context::RedisContext;
use crate::client::failure::{Failure, Redirect, Redirected};
use crate::client::topology::Topology;

/// Limit of an overflow bucket, as a multiple of its rule's limit.
const OVERFLOW_FACTOR: u64 = 10;
/// Most servers tried per request: more redirections come from a cluster that contradicts itself.
const ATTEMPTS_MAX: usize = 4;

/// Buckets in Redis or Valkey.
pub struct RedisStore {
    pub(crate) context: Arc<RedisContext>,
    pub(crate) topology: Topology<Primary>,
    pub(crate) figures: Arc<SlotCounters>,
    pub(crate) clock: Arc<dyn Clock>,
    budget: Budget,
}

impl RedisStore {
    /// Starts to connect and returns at once; until the first contact the store is unavailable. Needs a Tokio runtime.
    pub fn start(config: RedisConfig, clock: Arc<dyn Clock>) -> RedisStore {
        let budget = Budget::new(config.new_keys_per_second);
        let context = RedisContext::new(config, clock.clone());
        let shared = context.clone();
        let start = move |address| Primary::start(address, shared.clone());
        let topology = Topology::start(&context, Arc::new(start));
        RedisStore { context, topology, figures: Arc::default(), budget, clock }
    }

    /// The key of a charge's bucket, and the slot of that key in a cluster.
    pub fn place(&self, charge: &Charge) -> (BucketKey, u16) {
        let key = BucketKey::of(charge);
        (key, key.slot())
    }

    /// Decides all charges, slot by slot.
    async fn take_all(
        &self,
        charges: &[Charge],
        until: Time,
        outcomes: &mut Outcomes,
    ) -> Result<TakeResult, StoreError> {
        let groups = groups(charges, self.topology.is_split());
        let mut attempt = Attempt::new(charges);
        let mut denied_by = None;
        for (number, group) in groups.iter().enumerate() {
            match self.ask(&attempt, group, until).await {
                Ok(ScriptAnswer::Taken { taken, outcomes, .. }) => {
                    attempt.enter(group, taken, &outcomes);
                    if !taken.allowed {
                        denied_by = Some(number);
                        break;
                    }
                }
                Ok(ScriptAnswer::NoRoom(indexes)) => {
                    self.undo(&mut attempt, groups.get(..number).unwrap_or_default());
                    let index = |index: &usize| group.charges.get(*index).copied();
                    return Ok(TakeResult::NoRoom(indexes.iter().filter_map(index).collect()));
                }
                Err(error) => {
                    self.undo(&mut attempt, groups.get(..number).unwrap_or_default());
                    return Err(error);
                }
            }
        }
        if let Some(denying) = denied_by {
            self.figures.split(denying);
            self.undo(&mut attempt, groups.get(..denying).unwrap_or_default());
            attempt.denied = true;
            for group in groups.get(denying + 1..).unwrap_or_default() {
                // Limits that count denied requests count this one, and the others report how long to wait.
                if let Ok(ScriptAnswer::Taken { taken, outcomes, .. }) = self.ask(&attempt, group, until).await {
                    attempt.enter(group, taken, &outcomes);
                }
            }
        }
        let now = attempt.now;
        let outcome =
            |(charge, outcome): (&Charge, Option<Outcome>)| outcome.unwrap_or_else(|| charge.limit.unused(now));
        outcomes.extend(charges.iter().zip(attempt.outcomes).map(outcome));
        Ok(TakeResult::Taken(Taken::new(denied_by.is_none(), now)))
    }

    /// Decides the charges of one slot, following redirections.
    async fn ask(&self, attempt: &Attempt<'_>, group: &Group, until: Time) -> Result<ScriptAnswer, StoreError> {
        let (mut primary, mut asking) = (self.primary(group.slot)?, false);
        let mut request = attempt.request(group, self.is_full(attempt.charges, group, primary.memory_level()));
        for _ in 0..ATTEMPTS_MAX {
            let left = until.since(self.clock.now());
            let asked = match asking {
                false => primary.ask(request, group.slot, left).await,
                true => primary.ask_asking(request, group.slot, left).await,
            };
            match asked {
                Ok(answer) => {
                    self.count_made(attempt.charges, group, &answer, &primary);
                    return Ok(answer);
                }
                Err(Failure::Store(error)) => return Err(self.topology_changed(error)),
                Err(Failure::Redirected(redirected)) => {
                    let Redirected { redirect, work } = *redirected;
                    request = work;
                    (primary, asking) = self.follow(&redirect)?;
                }
            }
        }
        Err(self.topology_changed(unavailable("the cluster redirects in a circle")))
    }

    /// The server to try next; nothing has been charged.
    fn follow(&self, redirect: &Redirect) -> Result<(Arc<Primary>, bool), StoreError> {
        let (to, asking) = match redirect {
            Redirect::Ask { to, .. } => (to, true),
            Redirect::Moved { to, .. } => {
                self.context.topology_changed.notify_one();
                (to, false)
            }
            Redirect::ReadOnly | Redirect::ClusterDown => {
                return Err(self.topology_changed(unavailable(&redirect.to_string())));
            }
        };
        let primary = self.topology.at(to);
        primary
            .map(|primary| (primary, asking))
            .ok_or_else(|| self.topology_changed(unavailable("redirected too often")))
    }

    fn primary(&self, slot: u16) -> Result<Arc<Primary>, StoreError> {
        self.topology.primary(slot).ok_or_else(|| self.topology_changed(unavailable("no primary is known yet")))
    }

    /// Returns the error, and has the topology looked up again.
    fn topology_changed(&self, error: StoreError) -> StoreError {
        self.context.topology_changed.notify_one();
        error
    }

    /// Gives back what earlier groups charged for a request that was denied. Runs in a task of its own: the charge must
    /// be returned even if the caller has gone.
    fn undo(&self, attempt: &mut Attempt<'_>, groups: &[Group]) {
        for group in groups {
            let receipts = attempt.undo(group);
            if receipts.is_empty() {
                continue;
            }
            let (figures, units, slot) = (self.figures.clone(), receipts.len(), group.slot);
            let (primary, within) = (self.primary(slot), self.context.config.within);
            tokio::spawn(async move {
                let given = match primary {
                    Ok(primary) => primary.give_back(receipts, slot, within).await.is_ok(),
                    Err(_) => false,
                };
                match given {
                    true => figures.undone(units),
                    false => figures.overcharged(units), // stays charged: a little below the limit, never over it
                }
            });
        }
    }

    async fn return_to(&self, slot: u16, receipts: Vec<Receipt>) -> Result<usize, StoreError> {
        let within = self.context.config.within;
        match self.primary(slot)?.give_back(receipts, slot, within).await {
            Ok(given) => Ok(given),
            Err(Failure::Store(error)) => Err(self.topology_changed(error)),
            Err(Failure::Redirected(redirected)) => {
                let Redirected { redirect, work } = *redirected;
                let (primary, asking) = self.follow(&redirect)?;
                let given = match asking {
                    false => primary.give_back(work, slot, within).await,
                    true => primary.give_back_asking(work, slot, within).await,
                };
                given.map_err(|failure| self.topology_changed(failure.into_error()))
            }
        }
    }

    /// True if the creation of buckets for these charges is limited now.
    fn is_full(&self, charges: &[Charge], group: &Group, room: MemoryLevel) -> bool {
        if room == MemoryLevel::Roomy {
            return false;
        }
        let now = self.clock.now();
        let charges = group.charges.iter().filter_map(|index| charges.get(*index));
        charges
            .filter(|charge| !charge.owner.is_overflowing())
            .any(|charge| charge.ask.writes() && self.budget.is_spent(charge.owner.namespace, room, now))
    }

    fn count_made(&self, charges: &[Charge], group: &Group, answer: &ScriptAnswer, primary: &Primary) {
        let ScriptAnswer::Taken { made: made @ 1.., .. } = answer else { return };
        primary.record_new_buckets(*made);
        if let Some(charge) = group.charges.first().and_then(|index| charges.get(*index)) {
            self.budget.made(charge.owner.namespace, *made, self.clock.now());
        }
    }
}

/// The result of deciding all charges.
enum TakeResult {
    Taken(Taken),
    /// The charges at these indexes need a new bucket, and none may be created.
    NoRoom(SmallVec<[usize; 4]>),
}

/// One attempt to decide a request.
struct Attempt<'a> {
    charges: &'a [Charge],
    outcomes: SmallVec<[Option<Outcome>; 1]>, // held while the store is asked, and most requests have one
    now: Time,
    denied: bool,
}

impl<'a> Attempt<'a> {
    fn new(charges: &'a [Charge]) -> Attempt<'a> {
        let outcomes = SmallVec::from_elem(None, charges.len());
        Attempt { charges, outcomes, now: Time::ZERO, denied: false }
    }

    fn request(&self, group: &Group, full: bool) -> ScriptRequest {
        let mut charges = Vec::with_capacity(group.charges.len());
        charges.extend(group.charges.iter().filter_map(|index| self.charges.get(*index)));
        ScriptRequest { charges, denied: self.denied, full }
    }

    fn enter(&mut self, group: &Group, taken: Taken, outcomes: &[Outcome]) {
        self.now = taken.now;
        for (index, outcome) in group.charges.iter().zip(outcomes) {
            let overflows = self.charges.get(*index).is_some_and(|charge| charge.owner.is_overflowing());
            let source = if overflows { Source::Overflow } else { outcome.source };
            if let Some(entry) = self.outcomes.get_mut(*index) {
                *entry = Some(Outcome { source, ..*outcome });
            }
        }
    }

    /// Receipts for what the group was charged and a denied request would not have been.
    fn undo(&mut self, group: &Group) -> Vec<Receipt> {
        let mut receipts = Vec::new();
        for index in &group.charges {
            let entry = self.charges.get(*index).zip(self.outcomes.get_mut(*index));
            let Some((charge, Some(outcome))) = entry.map(|(charge, entry)| (charge, entry.as_mut())) else { continue };
            let stays = charge.count_denied || matches!(charge.ask, Ask::Force(_));
            if stays || outcome.granted == 0 {
                continue;
            }
            receipts.push(Receipt::of(charge, outcome));
            outcome.used = outcome.used.saturating_sub(outcome.granted);
            outcome.remaining = outcome.remaining.saturating_add(outcome.granted).min(outcome.limit);
            outcome.granted = 0;
        }
        receipts
    }
}

impl Store for RedisStore {
    async fn take(&self, charges: &[Charge], within: Span, outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        let until = self.clock.now().after(within);
        outcomes.clear();
        match self.take_all(charges, until, outcomes).await? {
            TakeResult::Taken(taken) => Ok(taken),
            TakeResult::NoRoom(indexes) => {
                self.figures.overflowed(indexes.len());
                let redirect = |(index, charge): (usize, &Charge)| match indexes.contains(&index) {
                    true => charge.overflowing(OVERFLOW_FACTOR),
                    false => *charge,
                };
                let redirected: Vec<Charge> = charges.iter().enumerate().map(redirect).collect();
                outcomes.clear();
                match self.take_all(&redirected, until, outcomes).await? {
                    TakeResult::Taken(taken) => Ok(taken),
                    TakeResult::NoRoom(_) => Err(refused("the namespace may not create more buckets now")),
                }
            }
        }
    }

    async fn give_back(&self, receipts: &[Receipt]) -> Result<usize, StoreError> {
        let mut by_slot: SmallVec<[(u16, Vec<Receipt>); 2]> = SmallVec::new();
        for receipt in receipts {
            let Charge { bucket, limit, identity, owner, .. } = match receipt.owner.is_overflowing() {
                true => receipt.charge(Ask::Peek(0)).overflowing(OVERFLOW_FACTOR),
                false => receipt.charge(Ask::Peek(0)),
            };
            let Receipt { units, stamp, slot: held, number, .. } = *receipt;
            let receipt = Receipt { bucket, limit, owner, identity, units, stamp, slot: held, number };
            let slot = if self.topology.is_split() { BucketKey::of_receipt(&receipt).slot() } else { 0 };
            match by_slot.iter_mut().find(|(other, _)| *other == slot) {
                Some((_, receipts)) => receipts.push(receipt),
                None => by_slot.push((slot, vec![receipt])),
            }
        }
        let mut given = 0;
        for (slot, receipts) in by_slot {
            given += self.return_to(slot, receipts).await?;
        }
        Ok(given)
    }

    async fn forget(&self, buckets: &[Charge]) -> Result<(), StoreError> {
        for charge in buckets {
            let key = BucketKey::of(charge);
            let slot = if self.topology.is_split() { key.slot() } else { 0 };
            let done = self.primary(slot)?.command(&[b"UNLINK", key.bytes()], self.context.config.within).await;
            done.map_err(|failure| self.topology_changed(failure.into_error()))?;
        }
        Ok(())
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn nodes(&self) -> Option<u64> {
        let configured = self.context.config.nodes;
        configured.or_else(|| self.context.nodes.known())
    }
}

pub(crate) fn unavailable(detail: &str) -> StoreError {
    StoreError { kind: StoreErrorKind::Unavailable, detail: detail.to_owned() }
}

pub(crate) fn refused(detail: &str) -> StoreError {
    StoreError { kind: StoreErrorKind::Refused, detail: detail.to_owned() }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("url", &self.context.config.url).finish_non_exhaustive()
    }
}

/// The charges of one slot, by their indexes in the request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) slot: u16,
    pub(crate) charges: SmallVec<[usize; 4]>,
}

/// The groups of a request, in the order in which they are decided. Without a cluster there is one slot.
pub(crate) fn groups(charges: &[Charge], split: bool) -> SmallVec<[Group; 2]> {
    let mut groups: SmallVec<[Group; 2]> = SmallVec::new();
    for (index, charge) in charges.iter().enumerate() {
        let slot = if split { BucketKey::of(charge).slot() } else { 0 };
        match groups.iter_mut().find(|group| group.slot == slot) {
            Some(group) => group.charges.push(index),
            None => groups.push(Group { slot, charges: SmallVec::from_slice(&[index]) }),
        }
    }
    if groups.len() > 1 {
        groups.sort_by_key(|group| group.charges.iter().filter_map(|index| charges.get(*index)).map(width).min());
    }
    groups
}

/// How many clients share a bucket, estimated by its rate: a limit per client is lower than a limit for all. In 2^-64
/// units per nanosecond, so that ten a year and twenty a year differ.
fn width(charge: &Charge) -> u128 {
    (u128::from(charge.limit.requests()) << 64) / u128::from(charge.limit.window().nanos().max(1))
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Digest, Limit};

    use super::*;

    fn charge(identity: u32, requests: u64) -> Charge {
        let bucket = Digest([u64::from(identity), requests]);
        Charge { identity, ..Charge::new(bucket, Limit::per_second(requests).unwrap(), 1) }
    }

    #[test]
    fn one_identity_is_one_group_and_the_narrowest_comes_first() {
        let charges = [charge(1, 100_000), charge(2, 1_000), charge(3, 10), charge(2, 5_000)];
        let indexes: Vec<Vec<usize>> = groups(&charges, true).iter().map(|group| group.charges.to_vec()).collect();
        assert_eq!(indexes, [vec![2], vec![1, 3], vec![0]]);
    }

    #[test]
    fn a_store_that_is_not_split_decides_all_at_once() {
        let charges = [charge(1, 100_000), charge(3, 10)];
        assert_eq!(groups(&charges, false).len(), 1);
        assert!(groups(&[], true).is_empty());
    }
}
