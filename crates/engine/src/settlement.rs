//! Settling a reservation: refunds, additional charges and slots, once.
//!
//! A receipt that left its process may come back twice, at two nodes, and in an older version after it was extended.
//! The store decides which call is the first: the number of a reservation names a bucket with one unit, and the call
//! that gets the unit settles. A second such bucket for every extension makes older versions void.

use smallvec::SmallVec;
use tollgate_core::{
    Ask, Charge, Enforcement, Gcra, KeyHasher, Limit, Outcome, Owner, Receipt, Request, Secret, Sharing, Source, Span,
    Time,
};
use tollgate_store::{Outcomes, Store, StoreError, Taken};

use crate::reservation::{Reservation, Reserved, ReservedCosts};
use crate::{Engine, Settlement, UnchargedUnits};

/// The effect of settling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Charges with a refund.
    pub refunded: usize,
    /// Charges with an additional charge.
    pub extended: usize,
    /// It was settled before, or this version of it was replaced by an extension: nothing changed.
    pub repeated: bool,
    /// By how much the real amounts exceed the reservation, by meter: charged, but for what is `uncharged`.
    pub above: SmallVec<[(Box<str>, u64); 2]>,
    /// Units above the reservation that rules did not charge.
    pub uncharged: Vec<UnchargedUnits>,
}

/// Whether this call is the first to settle a reservation.
enum Turn {
    /// It is; with the receipt that gives the turn back, and the time of the store. A reservation that never left the
    /// process has neither.
    First(Option<Box<Receipt>>, Time),
    /// Another call was first.
    Repeated,
}

/// What became of a request's turn in the queues of leaky buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueueTurn {
    Taken,
    GivenUp,
}

/// How long callers may present a receipt. After that its estimate stays charged.
pub const SETTLE_WITHIN: Span = Span::from_secs(24 * 3600);

/// How long a store remembers a settlement or an extension as a rule: callers without a response retry within seconds.
/// What comes back later refunds nothing twice, because receipts have numbers.
const REMEMBERED: Span = Span::from_secs(60);

/// How long it remembers a settlement above the estimate, which a repetition would charge again: for as long as the
/// receipt is accepted, and a minute for clocks that differ.
const REMEMBERED_ABOVE: Span = Span::from_nanos(SETTLE_WITHIN.nanos() + REMEMBERED.nanos());

/// The owner of the buckets that remember settlements and extensions for a while.
const SETTLEMENTS: u32 = u32::from_le_bytes(*b"once");
/// The owner of those that remember a settlement above its estimate, and the percentage of a store's memory that they
/// may fill: they are no reason to refuse a caller a bucket.
const SETTLEMENTS_ABOVE: (u32, u8) = (u32::from_le_bytes(*b"more"), 10);

/// For how long a turn is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnMemory {
    /// While callers retry.
    Retries,
    /// While the receipt is accepted.
    Receipt,
}

impl TurnMemory {
    /// One unit. The shorter limit admits an arrival time of the longer one, which a repeated call would else pull back.
    fn limit(self) -> Option<Limit> {
        let debt = REMEMBERED_ABOVE.nanos() / REMEMBERED.nanos();
        let limit = match self {
            TurnMemory::Retries => Gcra::new(1, REMEMBERED, 1).and_then(|limit| limit.with_max_debt(debt)),
            TurnMemory::Receipt => Gcra::new(1, REMEMBERED_ABOVE, 1),
        };
        limit.ok().map(Limit::Gcra)
    }

    /// The owner of its buckets, and its share of the memory.
    fn owner(self) -> (u32, u8) {
        match self {
            TurnMemory::Retries => (SETTLEMENTS, 100),
            TurnMemory::Receipt => SETTLEMENTS_ABOVE,
        }
    }
}

impl Reservation {
    /// The bucket whose only unit belongs to the call that settles the reservation. `None` while it has not left the
    /// process: then it is settled by value.
    pub(crate) fn settle_turn(&self, ask: Ask, memory: TurnMemory) -> Option<Charge> {
        self.turn(b"settled for good", 0, ask, memory)
    }

    /// The bucket whose only unit belongs to the call that extends this version of the reservation.
    pub(crate) fn extend_turn(&self, ask: Ask) -> Option<Charge> {
        self.turn(b"extended to next", self.step, ask, TurnMemory::Retries)
    }

    fn turn(&self, purpose: &[u8; 16], step: u64, ask: Ask, memory: TurnMemory) -> Option<Charge> {
        let mut hasher = KeyHasher::new(Secret::new(*purpose));
        hasher.word(self.number?);
        hasher.word(step);
        let first = self.entries.iter().filter(|entry| !entry.own).find_map(|entry| entry.pieces.first());
        // Beside a bucket of the reservation, so that one server decides both.
        let (owner, identity) = first.map_or((Owner::new(0), 0), |receipt| (receipt.owner, receipt.identity));
        let (id, share) = memory.owner();
        let charge = Charge {
            identity,
            owner: Owner { id, share, ..owner },
            ..Charge::new(hasher.finish(), memory.limit()?, 1)
        };
        Some(Charge { ask, sharing: Sharing::Exact, ..charge })
    }
}

impl<S: Store> Engine<S> {
    /// Settles at the real cost of the meter `requests`; other meters keep their estimates.
    pub async fn settle(&self, reservation: Reservation, cost: u64) -> Result<Settled, StoreError> {
        self.settle_costs(reservation, &[(Request::REQUESTS, cost)]).await
    }

    /// Settles at the real amounts: refunds what was estimated too high, releases the slots, and charges what was
    /// estimated too low, even if it does not fit. Meters without an amount keep their estimate.
    ///
    /// After an error the caller may retry with the same receipts: refunds are not repeated. If the store may have made
    /// the additional charge without answering, it is not charged again.
    ///
    /// While limits are [off](Enforcement::Off) nothing changes: the estimate stays charged until time returns it, and
    /// slots expire after their time to live.
    pub async fn settle_costs(&self, reservation: Reservation, actual: &[(&str, u64)]) -> Result<Settled, StoreError> {
        self.settle_after(QueueTurn::Taken, reservation, actual).await
    }

    /// Settles a request that left before its turn in a queue: it gives its place back, if it was the last one. The others
    /// have their turns already, and those do not change.
    pub async fn leave_queues(&self, reservation: Reservation, actual: &[(&str, u64)]) -> Result<Settled, StoreError> {
        self.settle_after(QueueTurn::GivenUp, reservation, actual).await
    }

    async fn settle_after(
        &self,
        turn: QueueTurn,
        reservation: Reservation,
        actual: &[(&str, u64)],
    ) -> Result<Settled, StoreError> {
        if self.enforcement() == Enforcement::Off {
            return Ok(Settled::default());
        }
        let actual = reservation.costs.replaced(actual);
        let Turn::First(once, now) = self.take_turn(&reservation, &actual).await? else {
            return Ok(Settled { repeated: true, ..Settled::default() });
        };
        let above = reservation.excess(&actual);
        let Reservation { costs: estimate, entries, local, number, .. } = reservation;
        let mut extra: SmallVec<[Charge; 4]> = SmallVec::new();
        let mut back: SmallVec<[Receipt; 4]> = SmallVec::new();
        for entry in entries {
            let charged = entry.charged();
            let used = match turn {
                QueueTurn::GivenUp if entry.is_place() => 0,
                _ => entry.used(&estimate, &actual),
            };
            let missing = if used > charged { entry.missing(&estimate, &actual) } else { 0 };
            if missing > 0 {
                extra.extend(entry.charge(Ask::Force(missing)));
            }
            give_back(entry, charged.saturating_sub(used), used > charged, now.after(REMEMBERED), &mut back);
        }
        let mut settlement = Settlement::new(self.rules(), number, now, local);
        let settled = self.give_and_take(&back, &extra, &mut settlement).await;
        self.observe_settlement(settlement);
        if let (Err(error), Some(turn)) = (&settled, once)
            && error.kind.charged_nothing()
        {
            let _ = self.give_back_to(local, &[*turn]).await; // nothing was charged: a retry must be the first again
        }
        settled.map(|settled| Settled { above, ..settled })
    }

    async fn give_and_take(
        &self,
        back: &[Receipt],
        extra: &[Charge],
        settlement: &mut Settlement,
    ) -> Result<Settled, StoreError> {
        let refunded = match back.is_empty() {
            true => 0,
            false => {
                let refunded = self.give_back_to(settlement.local, back).await;
                settlement.refunded(back, refunded.as_ref());
                refunded?
            }
        };
        let mut settled = Settled { refunded, extended: extra.len(), ..Settled::default() };
        if !extra.is_empty() {
            let mut outcomes = Outcomes::new();
            let taken = self.take_from(settlement.local, extra, &mut outcomes).await;
            settlement.charged(extra, &outcomes, taken.as_ref());
            let _ = taken?;
            settled.uncharged = settlement.uncharged(extra, &outcomes);
        }
        Ok(settled)
    }

    pub(crate) fn observe_settlement(&self, settlement: Settlement) {
        if let Some(observer) = self.observer.as_ref().filter(|_| !settlement.corrections.is_empty()) {
            let wall = self.wall();
            let now = if settlement.now == Time::ZERO { wall } else { settlement.now };
            observer.settled(&Settlement { now, wall, ..settlement });
        }
    }

    /// Lets only one of the calls that present a receipt settle it, and only its latest version.
    async fn take_turn(&self, reservation: &Reservation, actual: &ReservedCosts) -> Result<Turn, StoreError> {
        if reservation.entries.iter().any(|entry| entry.missing(&reservation.costs, actual) > 0) {
            let turn = self.take_turn_for(reservation, TurnMemory::Receipt).await?;
            if !matches!(turn, Turn::First(None, _)) {
                return Ok(turn);
            }
        }
        self.take_turn_for(reservation, TurnMemory::Retries).await
    }

    async fn take_turn_for(&self, reservation: &Reservation, memory: TurnMemory) -> Result<Turn, StoreError> {
        let turn = reservation.settle_turn(Ask::Consume(1), memory).zip(reservation.extend_turn(Ask::Peek(1)));
        let Some((settled, extended)) = turn else { return Ok(Turn::First(None, Time::ZERO)) };
        let mut outcomes = Outcomes::new();
        let taken = self.take_from(reservation.local, &[settled, extended], &mut outcomes).await?;
        let of_bucket = |outcome: &&Outcome| outcome.source == Source::Bucket;
        if outcomes.iter().filter(of_bucket).any(|outcome| !outcome.allowed) {
            return Ok(Turn::Repeated);
        }
        // Without room to remember it nothing was taken: charging twice is better than never.
        let taken_turn = outcomes.first().filter(of_bucket).filter(|_| taken.allowed);
        Ok(Turn::First(taken_turn.map(|outcome| Box::new(Receipt::of(&settled, outcome))), taken.now))
    }

    /// Settles at the estimates: only releases the slots.
    pub async fn release(&self, reservation: Reservation) -> Result<(), StoreError> {
        self.settle_costs(reservation, &[]).await.map(|_| ())
    }

    /// Renews the slots of a long request. False if one of them has expired: the caller should stop, or reserve again.
    /// While limits are [off](Enforcement::Off) the store is not called and the result is true.
    pub async fn renew(&self, reservation: &Reservation) -> Result<bool, StoreError> {
        if self.enforcement() == Enforcement::Off {
            return Ok(true);
        }
        let slots: SmallVec<[Charge; 4]> = reservation.renewals().collect();
        match slots.is_empty() {
            true => Ok(true),
            false => Ok(self.take_from(reservation.local, &slots, &mut Outcomes::new()).await?.allowed),
        }
    }

    /// Takes charges from the fallback buckets if `local`, otherwise from the store.
    pub(crate) async fn take_from(
        &self,
        local: bool,
        charges: &[Charge],
        outcomes: &mut Outcomes,
    ) -> Result<Taken, StoreError> {
        match local {
            true => Ok(self.fallback.take_now(charges, outcomes)),
            false => self.ask(charges, outcomes).await,
        }
    }

    pub(crate) async fn give_back_to(&self, local: bool, back: &[Receipt]) -> Result<usize, StoreError> {
        match local {
            true => Ok(self.fallback.give_back_now(back)),
            false => self.store.give_back(back).await,
        }
    }
}

impl Reservation {
    /// By how much `actual` exceeds the reserved amounts of meters, where a bucket is charged more for it.
    fn excess(&self, actual: &ReservedCosts) -> SmallVec<[(Box<str>, u64); 2]> {
        let is_charged = |meter: usize| {
            let mut counting = self.entries.iter().filter(|entry| entry.counts(meter));
            counting.any(|entry| entry.missing(&self.costs, actual) > 0)
        };
        let meters = self.costs.0.iter().zip(&actual.0).enumerate();
        let above = meters.filter_map(|(index, ((meter, reserved), (_, used)))| {
            let above = used.checked_sub(*reserved).filter(|above| *above > 0)?;
            is_charged(index).then(|| (meter.clone(), above))
        });
        above.collect()
    }

    /// Charges that renew its slots.
    pub(crate) fn renewals(&self) -> impl Iterator<Item = Charge> {
        self.entries.iter().filter_map(|entry| entry.charge(Ask::Renew(entry.slot()?)))
    }
}

/// Gives back a slot, or `units` from the newest charge on: the unused part of a stream is the end of it.
///
/// A receipt with a number is given back even for nothing if more was charged, or if it owes units for longer than the
/// turn is remembered: the store then remembers its number, and no older version of the reservation refunds it.
fn give_back(entry: Reserved, units: u64, used_up: bool, forgotten: Time, back: &mut SmallVec<[Receipt; 4]>) {
    let is_slot = entry.slot().is_some();
    let mut left = units;
    for piece in entry.pieces.into_iter().rev() {
        let units = if is_slot { piece.units } else { piece.units.min(left) };
        left = left.saturating_sub(units);
        let spent = used_up || piece.limit.owes_until(piece.stamp) > forgotten;
        if is_slot || units > 0 || (spent && piece.number.is_some()) {
            back.push(Receipt { units, ..piece });
        }
    }
}
