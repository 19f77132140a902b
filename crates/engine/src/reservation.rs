//! Reservations: charge an estimate now, settle the real cost later, and hold slots in between.

use smallvec::SmallVec;
use tollgate_core::{
    Ask, Charge, Digest, Enforcement, Gcra, KeyHasher, Limit, Owner, Receipt, Request, Secret, Sharing, SlotId, Source,
    Span,
};
use tollgate_ruleset::Charges;
use tollgate_store::{Outcomes, Store, StoreError, Taken};

use crate::engine::conclude;
use crate::{Decision, Engine};

/// An admitted request that is not finished: its receipts and slots. Settling consumes it. If it is dropped, its
/// estimate stays charged and its slots expire after their time to live.
#[must_use = "settle or release it, or its estimate stays charged"]
#[derive(Debug)]
pub struct Reservation {
    pub(crate) cost: u64,
    pub(crate) entries: SmallVec<[Reserved; 4]>,
    /// Made while the store was unavailable: charged to this node's fallback buckets.
    pub(crate) local: bool,
    /// Its number, if it was decoded from bytes.
    pub(crate) number: Option<u64>,
}

/// One charge of a reservation.
#[derive(Debug)]
pub(crate) struct Reserved {
    pub(crate) receipt: Receipt,
    /// Units that this rule charges per unit of cost.
    pub(crate) price: u64,
    /// Charged to this node's static share of the limit: the shared store has no record of it.
    pub(crate) own: bool,
}

impl Reserved {
    /// A charge on the same bucket.
    fn charge(&self, ask: Ask) -> Charge {
        let sharing = if self.own { Sharing::Local } else { Sharing::Exact };
        Charge { sharing, ..self.receipt.charge(ask) }
    }
}

/// The effect of settling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Charges with a refund.
    pub refunded: usize,
    /// Charges with an additional charge.
    pub extended: usize,
    /// Another node has settled it at a higher cost already: nothing changed.
    pub repeated: bool,
}

/// Whether this node is the first to charge for a receipt.
enum Turn {
    /// It is; with the receipt that gives the turn back, where other nodes could have charged.
    First(Option<Receipt>),
    /// Another call was first.
    Repeated,
}

/// How long a shared store remembers a reservation that was settled at a higher cost: callers without a response retry
/// within seconds. A caller that retries later pays twice.
const REMEMBERED: Span = Span::from_secs(600);

/// The owner of the buckets that remember settlements.
const SETTLEMENTS: u32 = u32::from_le_bytes(*b"once");

/// A charge on a bucket with one unit, identified by the number of a receipt that left its process: the node that gets
/// the unit makes the additional charge. Refunds need no such bucket, because a store honours a receipt once.
fn once_for_all_nodes(receipt: &Receipt) -> Option<Charge> {
    let mut hasher = KeyHasher::new(Secret::new(*b"settled for more"));
    hasher.word(receipt.number?);
    let limit = Limit::Gcra(Gcra::new(1, REMEMBERED, 1).ok()?);
    let owner = Owner { id: SETTLEMENTS, share: 100, ..receipt.owner };
    Some(Charge { identity: receipt.identity, owner, ..Charge::new(hasher.finish(), limit, 1) })
}

/// Multiplies charges of one unit by `cost`. Returns the units that each rule charges per unit of cost.
fn price(charges: &mut Charges, cost: u64) -> SmallVec<[u64; 16]> {
    let prices = charges.charges.iter().map(|charge| charge.ask.cost()).collect();
    for charge in &mut charges.charges {
        charge.ask = charge.ask.times(cost);
        // Any node may settle the receipt, so the charge goes to the bucket that all nodes share. A static share of
        // this node stays local, and makes the reservation local.
        if matches!(charge.sharing, Sharing::Leased(_) | Sharing::Async) {
            charge.sharing = Sharing::Exact;
        }
    }
    prices
}

impl Reservation {
    /// The cost that was reserved.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// True if only this process can settle it: it was made while the store was unavailable, or a rule with
    /// `consistency: local` charged this node's share. Another node would refund what it never charged.
    pub fn is_local(&self) -> bool {
        self.local || self.entries.iter().any(|entry| entry.own)
    }

    /// The slot it holds, if a concurrency rule applied.
    pub fn slot(&self) -> Option<SlotId> {
        self.entries.iter().find_map(|entry| entry.receipt.slot)
    }

    /// How long its slots are held without renewal: the shortest of their times.
    pub fn slot_ttl(&self) -> Option<Span> {
        let receipts = self.entries.iter().map(|entry| &entry.receipt);
        receipts.filter(|receipt| receipt.slot.is_some()).map(|receipt| receipt.limit.window()).min()
    }
}

impl<S: Store> Engine<S> {
    /// Decides a request and, if it passes, keeps the receipts of its charges. The cost of the request is an estimate
    /// until it is [settled](Engine::settle); an estimate of 0 charges nothing until then.
    pub async fn reserve(&self, request: &Request<'_>) -> (Decision, Option<Reservation>) {
        let mut charges = Charges::default();
        let pinned = self.generations.pin();
        let requests = std::slice::from_ref(request);
        // Charges of cost 1 first, to learn the units that each rule charges per unit of cost.
        if let Err(skipped) = self.charges(&pinned, &[request.cost(1)], &mut charges) {
            let decision = self.decide_skipped(pinned, skipped);
            self.observe(requests, &decision);
            let empty = Reservation { cost: request.cost, entries: SmallVec::new(), local: false, number: None };
            let reservation = decision.is_allowed().then_some(empty);
            return (decision, reservation);
        }
        let priced = [request.cost(1)];
        let mut prices = price(&mut charges, request.cost);
        let mut outcomes = Outcomes::new();
        let mut taken = self.take(&charges, &mut outcomes).await;
        if let Ok(first) = taken {
            taken = Ok(self.ask_other_shards(&pinned, &priced, &mut charges, &mut outcomes, first).await);
        }
        if taken.is_err() && self.merge_shards(&pinned, &priced, &mut charges) {
            prices = price(&mut charges, request.cost);
        }
        let prices: SmallVec<[(Digest, u64); 16]> =
            charges.charges.iter().map(|charge| charge.bucket).zip(prices).collect();
        let local = taken.is_err();
        let decision = match taken {
            Ok(taken) => conclude(pinned, &charges, taken, &outcomes),
            Err(error) => {
                let fallen = self.fall_back(pinned, &charges, &error);
                (charges.charges, outcomes) = (fallen.charges, fallen.outcomes);
                fallen.decision
            }
        };
        let reservation = decision.is_allowed().then(|| {
            let kept = charges.charges.iter().zip(&outcomes).filter(|(_, outcome)| outcome.allowed);
            let entries = kept.filter_map(|(charge, outcome)| {
                let (_, price) = *prices.iter().find(|(bucket, _)| *bucket == charge.bucket)?;
                let own = charge.sharing == Sharing::Local;
                Some(Reserved { receipt: Receipt::of(charge, outcome), price, own })
            });
            Reservation { cost: request.cost, entries: entries.collect(), local, number: None }
        });
        self.observe(requests, &decision);
        (decision, reservation)
    }

    /// Settles at the real cost: refunds what was estimated too high, releases the slots, and charges what was
    /// estimated too low, even if it does not fit.
    ///
    /// After an error the caller may retry with the same receipts: refunds are not repeated. If the store may have made
    /// the additional charge without answering, it is not charged again.
    ///
    /// While limits are [off](Enforcement::Off) nothing changes: the estimate stays charged until time returns it, and
    /// slots expire after their time to live.
    pub async fn settle(&self, reservation: Reservation, cost: u64) -> Result<Settled, StoreError> {
        if self.enforcement() == Enforcement::Off {
            return Ok(Settled::default());
        }
        let Reservation { cost: estimate, entries, local, .. } = reservation;
        let mut extra: SmallVec<[Charge; 4]> = SmallVec::new();
        let mut back: SmallVec<[Receipt; 4]> = SmallVec::new();
        let mut once = None;
        for entry in entries {
            let more = entry.charge(Ask::Force(cost.saturating_sub(estimate).saturating_mul(entry.price)));
            let Reserved { receipt, price, own } = entry;
            if receipt.slot.is_some() {
                back.push(receipt);
            } else if cost > estimate {
                extra.push(more);
                once = once.or_else(|| once_for_all_nodes(&receipt).filter(|_| !own));
                // Refunds nothing, but uses the receipt up: settled high, it must not be settled low afterwards.
                back.extend(receipt.number.map(|_| Receipt { units: 0, ..receipt }));
            } else if cost < estimate {
                let units = receipt.units.min((estimate - cost).saturating_mul(price));
                back.push(Receipt { units, ..receipt });
            }
        }
        let once = once.filter(|_| !local && self.store.is_shared());
        let turn = match &once {
            Some(charge) => self.take_turn(charge).await?,
            None => Turn::First(None),
        };
        let Turn::First(turn) = turn else { return Ok(Settled { repeated: true, ..Settled::default() }) };
        let settled = self.give_and_take(local, &back, &extra).await;
        if let (Err(error), Some(turn)) = (&settled, turn)
            && error.kind.charged_nothing()
        {
            let _ = self.store.give_back(&[turn]).await; // nothing was charged: a retry must be the first again
        }
        settled
    }

    async fn give_and_take(&self, local: bool, back: &[Receipt], extra: &[Charge]) -> Result<Settled, StoreError> {
        let refunded = match (back.is_empty(), local) {
            (true, _) => 0,
            (false, true) => self.fallback.give_back_now(back),
            (false, false) => self.store.give_back(back).await?,
        };
        if !extra.is_empty() {
            let _ = self.take_from(local, extra, &mut Outcomes::new()).await?;
        }
        Ok(Settled { refunded, extended: extra.len(), repeated: false })
    }

    /// Lets only one of the nodes that receive the same receipt make the additional charge.
    async fn take_turn(&self, once: &Charge) -> Result<Turn, StoreError> {
        let mut outcomes = Outcomes::new();
        let taken = self.ask(std::slice::from_ref(once), &mut outcomes).await?;
        let own = outcomes.first().filter(|outcome| outcome.source == Source::Bucket);
        Ok(match own {
            Some(outcome) if taken.allowed => Turn::First(Some(Receipt::of(once, outcome))),
            Some(_) => Turn::Repeated,
            None => Turn::First(None), // no room to remember it: charging twice is better than never
        })
    }

    /// Settles at the estimated cost: only releases the slots.
    pub async fn release(&self, reservation: Reservation) -> Result<(), StoreError> {
        let cost = reservation.cost;
        self.settle(reservation, cost).await.map(|_| ())
    }

    /// Renews the slots of a long request. False if one of them has expired: the caller should stop, or reserve again.
    /// While limits are [off](Enforcement::Off) the store is not called and the result is true.
    pub async fn renew(&self, reservation: &Reservation) -> Result<bool, StoreError> {
        if self.enforcement() == Enforcement::Off {
            return Ok(true);
        }
        let entries = reservation.entries.iter();
        let slots = entries.filter_map(|entry| Some(entry.charge(Ask::Renew(entry.receipt.slot?))));
        let slots: SmallVec<[Charge; 4]> = slots.collect();
        match slots.is_empty() {
            true => Ok(true),
            false => Ok(self.take_from(reservation.local, &slots, &mut Outcomes::new()).await?.allowed),
        }
    }

    /// Takes charges from the fallback buckets if `local`, otherwise from the store.
    async fn take_from(&self, local: bool, charges: &[Charge], outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        match local {
            true => Ok(self.fallback.take_now(charges, outcomes)),
            false => self.ask(charges, outcomes).await,
        }
    }
}
