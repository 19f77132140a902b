//! The store that a fleet shares.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::{Ask, Charge, Clock, Outcome, Receipt, Source, Span, Time};
use tollgate_store::{Outcomes, Store, StoreError, StoreErrorKind, Taken};

use super::budget::Budget;
use super::group::{Group, groups};
use super::key::BucketKey;
use super::primary::Primary;
use super::primary::memory::MemoryLevel;
use super::script::{ScriptAnswer, ScriptRequest};
use super::slot_stats::SlotCounters;
use crate::client::config::RedisConfig;
use crate::client::context::RedisContext;
use crate::client::failure::Redirected;
use crate::client::failure::{Failure, Redirect};
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
        let mut refused = None;
        for (number, group) in groups.iter().enumerate() {
            match self.ask(&attempt, group, until).await {
                Ok(ScriptAnswer::Taken { taken, outcomes, .. }) => {
                    attempt.enter(group, taken, &outcomes);
                    if !taken.allowed {
                        refused = Some(number);
                        break;
                    }
                }
                Ok(ScriptAnswer::NoRoom(places)) => {
                    self.undo(&mut attempt, groups.get(..number).unwrap_or_default());
                    let place = |place: &usize| group.places.get(*place).copied();
                    return Ok(TakeResult::NoRoom(places.iter().filter_map(place).collect()));
                }
                Err(error) => {
                    self.undo(&mut attempt, groups.get(..number).unwrap_or_default());
                    return Err(error);
                }
            }
        }
        if let Some(refusing) = refused {
            self.figures.split(refusing);
            self.undo(&mut attempt, groups.get(..refusing).unwrap_or_default());
            attempt.refused = true;
            for group in groups.get(refusing + 1..).unwrap_or_default() {
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
        Ok(TakeResult::Taken(Taken::new(refused.is_none(), now)))
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
        let charges = group.places.iter().filter_map(|place| charges.get(*place));
        charges
            .filter(|charge| !charge.owner.is_overflowing())
            .any(|charge| charge.ask.writes() && self.budget.is_spent(charge.owner.namespace, room, now))
    }

    fn count_made(&self, charges: &[Charge], group: &Group, answer: &ScriptAnswer, primary: &Primary) {
        let ScriptAnswer::Taken { made: made @ 1.., .. } = answer else { return };
        primary.record_new_buckets(*made);
        if let Some(charge) = group.places.first().and_then(|place| charges.get(*place)) {
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
    refused: bool,
}

impl<'a> Attempt<'a> {
    fn new(charges: &'a [Charge]) -> Attempt<'a> {
        let outcomes = SmallVec::from_elem(None, charges.len());
        Attempt { charges, outcomes, now: Time::ZERO, refused: false }
    }

    fn request(&self, group: &Group, full: bool) -> ScriptRequest {
        let mut charges = Vec::with_capacity(group.places.len());
        charges.extend(group.places.iter().filter_map(|place| self.charges.get(*place)));
        ScriptRequest { charges, refused: self.refused, full }
    }

    fn enter(&mut self, group: &Group, taken: Taken, outcomes: &[Outcome]) {
        self.now = taken.now;
        for (place, outcome) in group.places.iter().zip(outcomes) {
            let overflows = self.charges.get(*place).is_some_and(|charge| charge.owner.is_overflowing());
            let source = if overflows { Source::Overflow } else { outcome.source };
            if let Some(entry) = self.outcomes.get_mut(*place) {
                *entry = Some(Outcome { source, ..*outcome });
            }
        }
    }

    /// Receipts for what the group was charged and a denied request would not have been.
    fn undo(&mut self, group: &Group) -> Vec<Receipt> {
        let mut receipts = Vec::new();
        for place in &group.places {
            let entry = self.charges.get(*place).zip(self.outcomes.get_mut(*place));
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
            TakeResult::NoRoom(places) => {
                self.figures.overflowed(places.len());
                let redirect = |(place, charge): (usize, &Charge)| match places.contains(&place) {
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
