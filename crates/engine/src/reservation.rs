//! Reservations: charge estimates now, settle the real amounts later, and hold slots in between.

use smallvec::SmallVec;
use tollgate_core::{Ask, Charge, Enforcement, Limit, Outcome, Receipt, Request, Sharing, SlotId, Span, Time};
use tollgate_rules::spec::MeterSpec;
use tollgate_ruleset::{Charges, RequestError, RuleSet};
use tollgate_store::{Outcomes, Store};

use crate::conclude::conclude;
use crate::{Decision, Engine};

/// An admitted request that is not finished: its receipts and slots. Settling consumes it. If it is dropped, its
/// estimates stay charged and its slots expire after their time to live.
#[must_use = "settle or release it, or its estimates stay charged"]
#[derive(Debug)]
pub struct Reservation {
    pub(crate) costs: ReservedCosts,
    pub(crate) entries: SmallVec<[Reserved; 4]>,
    /// Made while the store was unavailable: charged to this node's fallback buckets.
    pub(crate) local: bool,
    /// Its number, if it was decoded from bytes.
    pub(crate) number: Option<u64>,
    /// How often it was extended. Only the latest version of a reservation can be extended or settled.
    pub(crate) step: u64,
}

/// Most buckets of a reservation: its receipt, after any number of extensions, fits into a body of 64 KiB.
pub const RESERVED_MAX: usize = 128;

/// The reserved amount of every meter; `requests` comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReservedCosts(pub(crate) SmallVec<[(Box<str>, u64); 4]>);

impl ReservedCosts {
    /// The index of the meter `requests`.
    const REQUESTS: u8 = 0;

    fn of(request: &Request<'_>) -> ReservedCosts {
        let requests = (Request::REQUESTS, request.cost);
        let all = std::iter::once(&requests).chain(request.costs);
        ReservedCosts(all.map(|(meter, amount)| (Box::from(*meter), *amount)).collect())
    }

    pub(crate) fn get(&self, meter: &str) -> Option<u64> {
        self.0.iter().find(|(name, _)| **name == *meter).map(|(_, amount)| *amount)
    }

    /// The same meters with other amounts, where `amounts` has one.
    pub(crate) fn replaced(&self, amounts: &[(&str, u64)]) -> ReservedCosts {
        let amount = |name: &str| amounts.iter().find(|(other, _)| *other == name).map(|(_, amount)| *amount);
        ReservedCosts(self.0.iter().map(|(name, old)| (name.clone(), amount(name).unwrap_or(*old))).collect())
    }

    /// The same meters with `amounts` added.
    pub(crate) fn added(&self, amounts: &[(&str, u64)]) -> ReservedCosts {
        let added = |name: &str, old: u64| {
            let more = amounts.iter().filter(|(other, _)| *other == name).map(|(_, more)| *more);
            more.fold(old, u64::saturating_add)
        };
        ReservedCosts(self.0.iter().map(|(name, old)| (name.clone(), added(name, *old))).collect())
    }

    /// The same meters without any amount.
    pub(crate) fn zeroed(&self) -> ReservedCosts {
        ReservedCosts(self.0.iter().map(|(name, _)| (name.clone(), 0)).collect())
    }
}

/// One bucket of a reservation.
#[derive(Debug)]
pub(crate) struct Reserved {
    /// Its charges, oldest first: that of the reservation, then those of extensions.
    pub(crate) pieces: SmallVec<[Receipt; 1]>,
    /// Units that the bucket is charged per unit of a meter, by the meter's index.
    pub(crate) prices: Prices,
    /// Charged to this node's static share of the limit: the shared store has no record of it.
    pub(crate) own: bool,
    /// A refusal of the bucket denies nothing.
    pub(crate) shadow: bool,
}

/// Units per unit of a meter, by the meter's index among the reserved costs.
pub(crate) type Prices = SmallVec<[(u8, u64); 1]>;

/// Most charges of one bucket that are kept apart. Beyond that the two oldest count as one that was made when the older
/// was: a refund of it may return less, never more.
const PIECES_MAX: usize = 8;

impl Reserved {
    /// The bucket of a charge that was admitted.
    #[inline]
    fn new(charge: &Charge, outcome: &Outcome, prices: Prices) -> Reserved {
        let (own, shadow) = (charge.sharing == Sharing::Local, !charge.is_enforced());
        Reserved { pieces: SmallVec::from_buf([Receipt::of(charge, outcome)]), prices, own, shadow }
    }

    /// Units for these amounts.
    pub(crate) fn units(&self, costs: &ReservedCosts) -> u64 {
        let amount = |meter: u8| costs.0.get(usize::from(meter)).map_or(0, |(_, amount)| *amount);
        let units = self.prices.iter().map(|(meter, price)| amount(*meter).saturating_mul(*price));
        units.fold(0, u64::saturating_add)
    }

    /// Whether it is charged for the meter of this index.
    pub(crate) fn counts(&self, meter: usize) -> bool {
        self.prices.iter().any(|(index, _)| usize::from(*index) == meter)
    }

    /// Units that were charged: fewer than the reserved ones if a shadow rule refused an extension, or limits were off.
    pub(crate) fn charged(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.units).fold(0, u64::saturating_add)
    }

    /// Units that `actual` amounts use. Without a change of the amounts the charges stay as they are.
    pub(crate) fn used(&self, estimate: &ReservedCosts, actual: &ReservedCosts) -> u64 {
        let used = self.units(actual);
        if used == self.units(estimate) { self.charged() } else { used }
    }

    /// Units that settling at `actual` amounts charges in addition.
    pub(crate) fn missing(&self, estimate: &ReservedCosts, actual: &ReservedCosts) -> u64 {
        match self.slot() {
            None => self.used(estimate, actual).saturating_sub(self.charged()),
            Some(_) => 0,
        }
    }

    /// The slot it holds, if it is one of a concurrency rule.
    pub(crate) fn slot(&self) -> Option<SlotId> {
        self.pieces.first()?.slot
    }

    /// Whether it is a place in a queue.
    pub(crate) fn is_place(&self) -> bool {
        self.pieces.first().is_some_and(|piece| matches!(piece.limit, Limit::Queue(_)))
    }

    /// A charge on the same bucket.
    pub(crate) fn charge(&self, ask: Ask) -> Option<Charge> {
        let sharing = if self.own { Sharing::Local } else { Sharing::Exact };
        let enforcement = if self.shadow { Enforcement::Shadow } else { Enforcement::Enforce };
        Some(Charge { sharing, enforcement, ..self.pieces.first()?.charge(ask) })
    }

    /// Adds the receipt of an extension. Charges of one window are one charge, and so are charges of a token bucket
    /// without another charge in between. Returns a receipt that was joined with an older one: its number is to be
    /// spent, or an older version of the reservation could refund it.
    pub(crate) fn extend(&mut self, receipt: Receipt) -> Option<Receipt> {
        if let Some(last) = self.pieces.last_mut()
            && (stamp_after(last, receipt.units), last.owner) == (receipt.stamp, receipt.owner)
        {
            join(last, receipt.units);
            return None;
        }
        self.pieces.push(receipt);
        if self.pieces.len() > PIECES_MAX { self.join_oldest() } else { None }
    }

    /// Joins the two oldest charges of one owner: a bucket and its overflow bucket are two owners.
    fn join_oldest(&mut self) -> Option<Receipt> {
        let same = |old: usize| {
            let owner = self.pieces.get(old)?.owner;
            let newer = self.pieces.iter().skip(old + 1).position(|piece| piece.owner == owner)?;
            Some((old, old + 1 + newer))
        };
        let (old, newer) = (0..self.pieces.len()).find_map(same)?;
        let joined = self.pieces.remove(newer);
        if let Some(piece) = self.pieces.get_mut(old) {
            join(piece, joined.units);
        }
        Some(joined).filter(|joined| joined.number.is_some())
    }
}

/// Adds units that were charged later, as if they had been charged at the same time.
fn join(piece: &mut Receipt, units: u64) {
    piece.stamp = stamp_after(piece, units);
    piece.units = piece.units.saturating_add(units);
}

/// The stamp of a charge of `units` right after that of `piece`: a token bucket returns them later. The real stamp is
/// not earlier, so that a refund by this one returns no more than is owed.
fn stamp_after(piece: &Receipt, units: u64) -> Time {
    match &piece.limit {
        Limit::Gcra(gcra) if !piece.owner.is_overflowing() => {
            piece.stamp.after(Span::from_nanos(gcra.interval().nanos().saturating_mul(units)))
        }
        _ => piece.stamp,
    }
}

impl Reservation {
    /// A reservation that charged nothing.
    fn uncharged(request: &Request<'_>) -> Reservation {
        let (costs, entries) = (ReservedCosts::of(request), SmallVec::new());
        Reservation { costs, entries, local: false, number: None, step: 0 }
    }

    /// The reserved amount of the meter `requests`.
    pub fn cost(&self) -> u64 {
        self.costs.get(Request::REQUESTS).unwrap_or(0)
    }

    /// The reserved amount of a meter; `None` if the request did not carry it.
    pub fn amount(&self, meter: &str) -> Option<u64> {
        self.costs.get(meter)
    }

    /// The reserved amount of every meter.
    pub fn amounts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.costs.0.iter().map(|(meter, amount)| (&**meter, *amount))
    }

    /// True if only this process can settle it: it was made while the store was unavailable, or a rule with
    /// `consistency: local` charged this node's share. Another node would refund what it never charged.
    pub fn is_local(&self) -> bool {
        self.local || self.entries.iter().any(|entry| entry.own)
    }

    /// The slot it holds, if a concurrency rule applied.
    pub fn slot(&self) -> Option<SlotId> {
        self.entries.iter().find_map(Reserved::slot)
    }

    /// How long its slots are held without renewal: the shortest of their times.
    pub fn slot_ttl(&self) -> Option<Span> {
        let slots = self.entries.iter().filter(|entry| entry.slot().is_some());
        slots.filter_map(|entry| Some(entry.pieces.first()?.limit.window())).min()
    }
}

/// Units that each charge takes per unit of every meter. Charges of a rule that sets no price are slots.
fn prices(rules: &RuleSet, charges: &Charges, costs: &ReservedCosts) -> SmallVec<[Prices; 4]> {
    let mut all = SmallVec::new();
    all.resize_with(charges.charges.len(), Prices::new);
    for applied in &charges.applied {
        let Some(rule) = rules.rule(applied.rule) else { continue };
        let Some(prices) = applied.charge.and_then(|index| all.get_mut(usize::from(index))) else { continue };
        match &rule.spec.meter {
            MeterSpec::Requests => add_price(prices, ReservedCosts::REQUESTS, applied.factor),
            MeterSpec::Weighted(weights) => {
                for (meter, weight) in weights {
                    let Some(index) = costs.0.iter().position(|(name, _)| **name == **meter) else { continue };
                    add_price(prices, index as u8, weight.saturating_mul(applied.factor));
                }
            }
        }
    }
    all
}

/// Adds units per unit of a meter: several rules may charge one bucket.
fn add_price(prices: &mut Prices, meter: u8, price: u64) {
    match prices.iter_mut().find(|(other, _)| *other == meter) {
        Some((_, total)) => *total = total.saturating_add(price),
        None => prices.push((meter, price)),
    }
}

/// The prices of a bucket that is charged by itself, out of those of `all` charges.
#[cold]
fn prices_of(charge: &Charge, all: &[Charge], prices: &[Prices]) -> Prices {
    let mut priced = all.iter().zip(prices);
    priced.find(|(other, _)| other.bucket == charge.bucket).map_or_else(Prices::new, |(_, prices)| prices.clone())
}

/// Any node may settle the receipt, so its charges go to the buckets that all nodes share. A static share of this node
/// stays local, and makes the reservation local.
fn share(charges: &mut Charges) {
    for charge in &mut charges.charges {
        if matches!(charge.sharing, Sharing::Leased(_) | Sharing::Async) {
            charge.sharing = Sharing::Exact;
        }
    }
}

/// Which receipts of a request are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeping {
    Nothing,
    /// Places in queues, which are given back if the caller leaves before its turn. Not those of leases.
    Queues,
    All,
}

impl Keeping {
    /// Slots are held with everything beside them.
    fn held(charges: &Charges) -> Keeping {
        let any = |is_kept: fn(&Charge) -> bool| charges.charges.iter().any(is_kept);
        match () {
            () if any(|charge| matches!(charge.ask, Ask::Hold(_))) => Keeping::All,
            () if any(|charge| Keeping::Queues.keeps(charge)) => Keeping::Queues,
            () => Keeping::Nothing,
        }
    }

    fn keeps(self, charge: &Charge) -> bool {
        let is_direct = matches!(charge.sharing, Sharing::Exact | Sharing::Local);
        match self {
            Keeping::Nothing => false,
            Keeping::Queues => is_direct && matches!(charge.limit, Limit::Queue(_)),
            Keeping::All => true,
        }
    }
}

impl<S: Store> Engine<S> {
    /// Decides a request and, if it passes, keeps the receipts of its charges. The costs of the request are estimates
    /// until they are [settled](Engine::settle); an estimate of 0 charges nothing until then.
    pub async fn reserve(&self, request: &Request<'_>) -> (Decision, Option<Reservation>) {
        self.reserve_if(request, |_| Keeping::All).await
    }

    /// Decides a request that runs in this process and, if it passes and holds slots, keeps them until the reservation is
    /// [released](Engine::release). A request without slots is decided as [`decide`](Engine::decide) does it: with
    /// leases, and without receipts but those of its places in queues.
    pub async fn hold(&self, request: &Request<'_>) -> (Decision, Option<Reservation>) {
        self.reserve_if(request, Keeping::held).await
    }

    /// Keeps receipts only if `keeps` says so for the charges of the request.
    async fn reserve_if(
        &self,
        request: &Request<'_>,
        keeps: impl Fn(&Charges) -> Keeping,
    ) -> (Decision, Option<Reservation>) {
        let mut charges = Charges::default();
        let pinned = self.generations.pin();
        let requests = std::slice::from_ref(request);
        let read = self.charges(&pinned, requests, &mut charges).and_then(|()| match charges.charges.len() {
            0..=RESERVED_MAX => Ok(()),
            _ => Err(RequestError::reserves_too_much(RESERVED_MAX).into()),
        });
        if let Err(skipped) = read {
            let decision = self.decide_skipped(pinned, skipped);
            self.observe(requests, &decision, &[]);
            let reservation =
                (decision.is_allowed() && keeps(&charges) == Keeping::All).then(|| Reservation::uncharged(request));
            return (decision, reservation);
        }
        let keeping = keeps(&charges);
        if keeping == Keeping::All {
            share(&mut charges);
        }
        let mut outcomes = Outcomes::new();
        let mut taken = self.take(&charges, &mut outcomes).await;
        if let Ok(first) = taken {
            taken = Ok(self.ask_other_shards(&pinned, requests, &mut charges, &mut outcomes, first).await);
        }
        if taken.is_err() && self.merge_shards(&pinned, requests, &mut charges) && keeping == Keeping::All {
            share(&mut charges);
        }
        let costs = ReservedCosts::of(request);
        let mut prices = prices(&pinned.rules, &charges, &costs);
        let local = taken.is_err();
        let decision = match taken {
            Ok(taken) => conclude(pinned, &charges, taken, &outcomes),
            Err(error) => {
                let fallen = self.fall_back(pinned, &charges, &error);
                prices = fallen.charges.iter().map(|charge| prices_of(charge, &charges.charges, &prices)).collect();
                (charges.charges, outcomes) = (fallen.charges, fallen.outcomes);
                fallen.decision
            }
        };
        let reservation = (decision.is_allowed() && keeping != Keeping::Nothing).then(|| {
            let mut entries = SmallVec::new();
            for ((charge, outcome), prices) in charges.charges.iter().zip(&outcomes).zip(prices) {
                if outcome.allowed && keeping.keeps(charge) && !matches!(charge.ask, Ask::Peek(_)) {
                    entries.push(Reserved::new(charge, outcome, prices));
                }
            }
            Reservation { costs, entries, local, number: None, step: 0 }
        });
        self.observe(requests, &decision, &charges.charges);
        (decision, reservation)
    }
}
