//! The lease of one bucket: units that the shared store has already debited, and a copy of the bucket.
//!
//! A leased unit can be spent without a call because the store counted it when it was granted. Spending it later only
//! moves it in time, by at most the lifetime of the lease. Hence the bound: in any span t at most `B + r·t + min(N·q,
//! r·τ)` units pass, for N nodes that hold at most q units each for at most τ. The units of a node that crashes are
//! lost, never spent twice.

use tollgate_core::{Charge, Digest, LeaseSize, Limit, Outcome, Owner, Receipt, Source, Span, Time, Wait};

use super::demand::Demand;
use super::refill::{BatchBounds, RefillState};
use crate::fleet::deny::is_aging;
use crate::fleet::mirror::{Mirror, Observation};

/// Units of one grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::fleet) struct Grant {
    pub(in crate::fleet) units: u64,
    /// By this node's clock, measured from before the call.
    pub(in crate::fleet) expires: Time,
    /// Identifies the debit in the store, for giving units back.
    pub(in crate::fleet) stamp: Time,
}

/// The terms common to all leases of a node, for one request.
#[derive(Clone, Copy, Debug)]
pub(in crate::fleet) struct LeaseTerms {
    pub(in crate::fleet) ttl: Span,
    pub(in crate::fleet) deny_ttl: Span,
    pub(in crate::fleet) nodes: u64,
    /// Whether this request may call the store. If not, a request that would have to is [`LeaseDecision::Cold`], and
    /// has changed nothing.
    pub(in crate::fleet) may_ask: bool,
}

/// The decision of a lease about a request.
#[derive(Clone, Copy, Debug)]
pub(in crate::fleet) enum LeaseDecision {
    /// Paid by the lease; with `refill`, the store should be asked for that many more units.
    Spent { outcome: Outcome, now: Time, grants: [Grant; 2], refill: Option<u64> },
    /// The bucket certainly refuses.
    Refused { outcome: Outcome, now: Time },
    /// The store must be asked: all units of the lease are taken, and `missing` more are needed. If a larger `batch` is
    /// granted, the rest goes into the lease.
    Short { grants: [Grant; 2], missing: u64, batch: Option<u64> },
    /// The bucket was not used recently, or there is no room for another lease: the store decides.
    Cold,
}

/// The lease of one bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketLease {
    pub(super) limit: Limit,
    owner: Owner,
    identity: u32,
    /// The first is spent first; each has its own expiry.
    grants: [Grant; 2],
    known: Option<(Mirror, Observation)>,
    demand: Demand,
    refill: RefillState,
    pub(super) used_at: Time,
}

impl BucketLease {
    pub(super) fn new(charge: &Charge, now: Time, gap: Span) -> BucketLease {
        BucketLease {
            limit: charge.limit,
            owner: charge.owner,
            identity: charge.identity,
            grants: [Grant::default(); 2],
            known: None,
            demand: Demand::begun(now, gap),
            refill: RefillState::default(),
            used_at: now,
        }
    }

    /// Units held.
    pub(super) fn units(&self) -> u64 {
        let [current, next] = &self.grants;
        current.units + next.units
    }

    /// The common case, kept short: the first grant covers the cost and no refill is due, or the bucket certainly
    /// refuses. `None` has changed nothing.
    #[inline]
    pub(super) fn try_spend(&mut self, charge: &Charge, now: Time, deny_ttl: Span) -> Option<(Outcome, Time)> {
        let cost = charge.ask.cost();
        let spends = charge.ask.writes();
        let left = self.units().saturating_sub(cost);
        if self.limit != charge.limit || (spends && self.refill.is_due(left, now)) {
            return None;
        }
        let [current, _] = &mut self.grants;
        if current.units >= cost && now < current.expires {
            let stamp = current.stamp;
            if spends {
                current.units -= cost;
                self.demand.note(now, cost);
                self.used_at = now;
            }
            return self.answer(charge, now, stamp);
        }
        if self.units() > 0 {
            return None;
        }
        let refused = if self.is_aging(now, deny_ttl) { None } else { self.refusal(charge, now, deny_ttl) };
        if refused.is_some() && spends {
            self.demand.note(now, cost);
            self.used_at = now;
        }
        refused
    }

    /// Spends, refuses, or returns what to ask the store for.
    pub(super) fn begin(&mut self, charge: &Charge, bound: LeaseSize, now: Time, terms: &LeaseTerms) -> LeaseDecision {
        let cost = charge.ask.cost();
        let spends = charge.ask.writes();
        let knows = self.units() < cost && !self.is_aging(now, terms.deny_ttl);
        let refusal = if knows { self.refusal(charge, now, terms.deny_ttl) } else { None };
        let refills = spends && self.refill.is_due(self.units().saturating_sub(cost), now);
        if !terms.may_ask && refusal.is_none() && (refills || self.units() < cost) {
            return LeaseDecision::Cold;
        }
        if spends {
            self.demand.note(now, cost);
            self.used_at = now;
        }
        if let Some((outcome, now)) = refusal {
            return LeaseDecision::Refused { outcome, now };
        }
        if self.units() < cost {
            return self.fall_short(cost, spends, bound, now, terms);
        }
        let grants = if spends { self.take(cost) } else { Default::default() };
        let [first, second] = &grants;
        let stamp = if first.units > 0 { first.stamp } else { second.stamp };
        let Some((outcome, seen)) = self.answer(charge, now, stamp) else {
            return LeaseDecision::Cold; // unreachable: units come with a copy of the bucket
        };
        let refill = refills.then(|| self.batch(bound, now, terms).saturating_sub(self.units()).max(1));
        if refills {
            self.refill.start();
        }
        LeaseDecision::Spent { outcome, now: seen, grants, refill }
    }

    fn fall_short(
        &mut self,
        cost: u64,
        spends: bool,
        bound: LeaseSize,
        now: Time,
        terms: &LeaseTerms,
    ) -> LeaseDecision {
        if !spends {
            return LeaseDecision::Short { grants: Default::default(), missing: cost - self.units(), batch: None };
        }
        let held = self.units();
        let grants = self.take(held);
        let missing = cost - held;
        if self.refill.is_in_flight() {
            return LeaseDecision::Short { grants, missing, batch: None };
        }
        self.refill.start_empty(now);
        let batch = self.batch(bound, now, terms).max(missing);
        LeaseDecision::Short { grants, missing, batch: Some(batch) }
    }

    fn batch(&self, size: LeaseSize, now: Time, terms: &LeaseTerms) -> u64 {
        let room = match &self.known {
            Some((mirror, seen)) => mirror.room(&self.limit, seen.earliest(now)),
            None => self.limit.capacity(),
        };
        let bounds = BatchBounds { limit: &self.limit, size, room, nodes: terms.nodes, ttl: terms.ttl };
        self.refill.batch(&self.demand, now, &bounds)
    }

    /// The outcome of an admitted charge: the copy of the bucket, without the units that this node holds.
    #[inline]
    fn answer(&self, charge: &Charge, now: Time, stamp: Time) -> Option<(Outcome, Time)> {
        let (mirror, seen) = self.known.as_ref()?;
        let now = seen.earliest(now);
        let granted = if charge.ask.writes() { charge.ask.cost() } else { 0 };
        let state = mirror.without(&self.limit, self.units());
        let outcome = state.view(&self.limit, now, &charge.ask, true, granted)?;
        Some((Outcome { source: Source::Lease, stamp, ..outcome }, now))
    }

    /// True if the copy is about to expire: one request asks the store again while the copy still answers others.
    #[inline]
    fn is_aging(&self, now: Time, deny_ttl: Span) -> bool {
        let aging = |(_, seen): &(Mirror, Observation)| is_aging(seen.age(now), deny_ttl);
        self.refill.may_ask(now) && self.known.as_ref().is_some_and(aging)
    }

    /// The refusal, if it is certain: by a recent copy, or because the bucket was found empty and is not asked before
    /// its backoff ends.
    #[inline]
    fn refusal(&self, charge: &Charge, now: Time, deny_ttl: Span) -> Option<(Outcome, Time)> {
        let (mirror, seen) = self.known.as_ref()?;
        let state = mirror.without(&self.limit, self.units());
        let refuses = seen.age(now) <= deny_ttl
            && !state.admits(&self.limit, seen.latest(now), &charge.ask)
            && !deny_ttl.is_zero();
        let backoff = self.refill.backoff(now);
        if !refuses && backoff.is_zero() {
            return None;
        }
        let now = seen.earliest(now);
        let outcome = state.view(&self.limit, now, &charge.ask, false, 0)?;
        let wait = outcome.wait.max(if backoff.is_zero() { Wait::None } else { Wait::For(backoff) });
        Some((Outcome { source: Source::Lease, wait, ..outcome }, now))
    }

    /// Enters an answer of the store: a newer copy of the bucket, and `units` that were granted and not spent. `asked`
    /// is the size of the batch, if the call asked for one.
    pub(super) fn learn(
        &mut self,
        outcome: &Outcome,
        seen: Observation,
        units: u64,
        asked: Option<u64>,
        terms: &LeaseTerms,
    ) {
        let newer = self.known.as_ref().is_none_or(|(_, old)| old.store_time <= seen.store_time);
        if let Some(mirror) = Mirror::of(&self.limit, outcome).filter(|_| newer) {
            self.known = Some((mirror, seen));
        }
        if units > 0 {
            self.add(Grant { units, expires: self.expiry(outcome, &seen, terms.ttl), stamp: outcome.stamp });
        }
        if let Some(asked) = asked {
            self.refill.complete();
            let others_refused = outcome.allowed && outcome.granted == 0;
            if !others_refused {
                let is_dry = outcome.granted < asked;
                self.refill.learn_batch(asked, is_dry, &self.demand, &seen);
                if is_dry {
                    self.refill.back_off(&self.limit, terms.nodes, &seen);
                }
            }
        }
    }

    /// Measured from before the call was sent, so it is never later than by the store's clock. Units of a window expire
    /// with it, a thousandth early, because clocks run at different rates.
    fn expiry(&self, outcome: &Outcome, seen: &Observation, ttl: Span) -> Time {
        let span = match self.limit {
            Limit::FixedWindow(_) => {
                let left = outcome.stamp.since(seen.store_time).nanos();
                Span::from_nanos(left - left.div_ceil(1000)).min(ttl)
            }
            _ => ttl,
        };
        seen.sent.after(span)
    }

    pub(super) fn is_refilling(&self) -> bool {
        self.refill.is_in_flight()
    }

    /// The refill got no answer: another request may ask, after a while if the store `failed`.
    pub(super) fn abandon_refill(&mut self, now: Time, failed: bool) {
        self.refill.abandon(now, failed);
    }

    /// Expires the copy of the bucket: units were given back to it.
    pub(super) fn invalidate(&mut self) {
        self.refill.end_backoff();
        if let Some((_, seen)) = &mut self.known {
            seen.sent = Time::ZERO; // too old to refuse by, still used for hints
        }
    }

    fn take(&mut self, mut cost: u64) -> [Grant; 2] {
        let mut taken = [Grant::default(); 2];
        for (from, into) in self.grants.iter_mut().zip(&mut taken) {
            let units = cost.min(from.units);
            cost -= units;
            from.units -= units;
            *into = Grant { units, ..*from };
        }
        self.promote();
        taken
    }

    fn promote(&mut self) {
        let [current, next] = &mut self.grants;
        if current.units == 0 && next.units > 0 {
            *current = std::mem::take(next);
        }
    }

    fn add(&mut self, grant: Grant) {
        self.promote();
        let [current, next] = &mut self.grants;
        let place = if current.units == 0 { current } else { next };
        *place = match place.units {
            0 => grant,
            // A third grant: the earlier expiry and the older stamp are safe for both.
            units => Grant {
                units: units.saturating_add(grant.units),
                expires: place.expires.min(grant.expires),
                stamp: place.stamp.min(grant.stamp),
            },
        };
    }

    /// Takes back units that were not spent. Returns them if both grants are in use by others.
    pub(super) fn put_back(&mut self, grant: Grant) -> Option<Grant> {
        let alike = |other: &&mut Grant| other.stamp == grant.stamp && other.expires == grant.expires;
        if let Some(own) = self.grants.iter_mut().find(alike) {
            own.units += grant.units;
            return None;
        }
        let [current, next] = &mut self.grants;
        match (current.units, next.units) {
            (0, _) => *current = grant,
            (_, 0) => *next = std::mem::replace(current, grant),
            _ => return Some(grant),
        }
        None
    }

    /// Removes expired grants.
    pub(super) fn expire(&mut self, now: Time) -> [Grant; 2] {
        let grants = self.grants.each_mut();
        let expired = grants.map(|grant| if now < grant.expires { Grant::default() } else { std::mem::take(grant) });
        self.promote();
        expired
    }

    /// Removes all grants, if the lease was not used for a while.
    pub(super) fn idle(&mut self, now: Time) -> [Grant; 2] {
        match now.since(self.used_at) > self.demand.patience() && !self.refill.is_in_flight() {
            true => self.empty(),
            false => Default::default(),
        }
    }

    pub(super) fn empty(&mut self) -> [Grant; 2] {
        self.refill.reset();
        std::mem::take(&mut self.grants)
    }

    /// True if it can be dropped without losing units.
    pub(super) fn is_over(&self, now: Time, ttl: Span) -> bool {
        self.units() == 0 && now.since(self.used_at) > ttl
    }

    /// The receipt for units to give back; `None` if time has already returned them, or their window is over.
    pub(super) fn receipt(&self, bucket: Digest, grant: &Grant, now: Time) -> Option<Receipt> {
        let over = |(_, seen): &(Mirror, Observation)| self.limit.owes_until(grant.stamp) <= seen.earliest(now);
        if grant.units == 0 || self.known.as_ref().is_none_or(over) {
            return None;
        }
        let BucketLease { limit, owner, identity, .. } = *self;
        let Grant { units, stamp, .. } = *grant;
        Some(Receipt { bucket, limit, owner, identity, units, stamp, slot: None, number: None })
    }

    /// The outcome of a charge that the store decided, without the units that this node holds.
    pub(super) fn view(&self, charge: &Charge, seen: &Outcome, now: Time, allowed: bool, granted: u64) -> Outcome {
        let state = Mirror::of(&self.limit, seen).map(|mirror| mirror.without(&self.limit, self.units()));
        let own = state.and_then(|state| state.view(&self.limit, now, &charge.ask, allowed, granted));
        own.map_or(*seen, |own| Outcome { stamp: seen.stamp, source: Source::Lease, ..own })
    }
}
