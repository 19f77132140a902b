//! The units at hand, by key: a state machine without network and clock.

use std::borrow::Cow;
use std::collections::HashMap;

use tokio::sync::watch;
use tollgate_core::{Span, Time};

use super::PrefetchConfig;
use crate::RemoteDecision;
use crate::failure::Outage;

/// The units at hand, by key.
pub(super) struct LeaseTable {
    config: PrefetchConfig,
    keys: HashMap<String, KeyLease>,
}

/// What is known of a key.
struct KeyLease {
    held: Option<HeldUnits>,
    /// Units of the next refill.
    size: u64,
    /// The last refill was refused: the size is what there may be room for.
    was_refused: bool,
    /// There while a refill is under way, with its beginning; dropped when it has ended.
    refilling: Option<(watch::Sender<()>, Time)>,
    /// A refusal or a failure that still holds.
    settled: Option<(KeyAnswer, Time)>,
    used_at: Time,
}

enum KeyAnswer {
    Denied(Box<RemoteDecision>),
    Failed(Outage),
    /// Units cannot be taken in advance: a rule counts slots, or the request is rejected.
    OneByOne,
}

/// Units that were charged, and not all spent yet.
struct HeldUnits {
    receipt: String,
    units: u64,
    spent: u64,
    taken_at: Time,
    /// As the server decided, for what callers see.
    decision: Box<RemoteDecision>,
}

/// What follows for a request.
pub(super) enum LeaseStep {
    /// Decided here.
    Decided(Box<RemoteDecision>),
    /// The server was asked a moment ago and gave no answer.
    Failed(Outage),
    /// Ask the server for this request alone.
    AskOnce,
    /// Take so many units, then try again.
    Refill(u64),
    /// Units are on their way.
    Wait(watch::Receiver<()>),
}

/// How a refill ended.
pub(super) enum LeaseRefill {
    Answered { receipt: Option<String>, holds_slot: bool, decision: Box<RemoteDecision> },
    Rejected,
    Failed(Outage),
}

/// A reservation to be settled at what was spent of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Returned {
    pub(super) receipt: String,
    pub(super) spent: u64,
}

/// How long a key is asked about one by one before units are tried again.
const ONE_BY_ONE_FOR: Span = Span::from_secs(60);
/// How long a failure holds for the callers that waited for the same units.
const FAILED_FOR: Span = Span::from_millis(10);

impl LeaseTable {
    pub(super) fn new(config: PrefetchConfig) -> LeaseTable {
        LeaseTable { config, keys: HashMap::new() }
    }

    /// Decides, or says what to do. What has expired is returned, to be settled.
    pub(super) fn take(&mut self, key: &str, cost: u64, now: Time) -> (LeaseStep, Option<Returned>) {
        if !self.keys.contains_key(key) && !self.make_room(now) {
            return (LeaseStep::AskOnce, None);
        }
        let (life, most) = (self.config.life, self.config.units.max(1));
        let lease = self.keys.entry(key.to_owned()).or_insert_with(|| KeyLease::new(most, now));
        lease.used_at = now;
        let returned = lease.expire(life, now);
        let step = lease.step(cost, most, now);
        (step, returned)
    }

    /// A refill has ended.
    pub(super) fn refilled(&mut self, key: &str, units: u64, refill: LeaseRefill, now: Time) -> Option<Returned> {
        let (most, deny_for) = (self.config.units.max(1), self.config.deny_for);
        let Some(lease) = self.keys.get_mut(key) else {
            return match refill {
                LeaseRefill::Answered { receipt: Some(receipt), .. } => Some(Returned { receipt, spent: 0 }),
                _ => None,
            };
        };
        // Dropping the sender wakes the callers that wait. The life of units begins before the server charged them.
        let taken_at = lease.refilling.take().map_or(now, |(_, started)| started);
        lease.settled = None;
        match refill {
            LeaseRefill::Failed(outage) => lease.settled = Some((KeyAnswer::Failed(outage), now.after(FAILED_FOR))),
            LeaseRefill::Rejected => lease.settled = Some((KeyAnswer::OneByOne, now.after(FAILED_FOR))),
            LeaseRefill::Answered { receipt: Some(receipt), holds_slot: true, .. } => {
                lease.settled = Some((KeyAnswer::OneByOne, now.after(ONE_BY_ONE_FOR)));
                return Some(Returned { receipt, spent: 0 });
            }
            LeaseRefill::Answered { receipt: Some(receipt), decision, .. } if decision.allowed => {
                let quarter = decision.limit.map_or(most, |limit| limit / 4).max(1);
                lease.was_refused = false;
                lease.size = units.saturating_mul(2).clamp(1, most.min(quarter));
                let returned = lease.held.take().map(HeldUnits::returned);
                lease.held = Some(HeldUnits { receipt, units, spent: 0, taken_at, decision });
                return returned;
            }
            LeaseRefill::Answered { decision, .. } => lease.refused(units, &decision, now, deny_for),
        }
        None
    }

    /// The server was asked about one request: a refusal holds for a moment.
    pub(super) fn asked(&mut self, key: &str, decision: &RemoteDecision, now: Time) {
        let (first, deny_for) = ((self.config.units / 10).max(1), self.config.deny_for);
        let Some(lease) = self.keys.get_mut(key) else { return };
        match (decision.allowed, decision.retry_after) {
            (false, Some(wait)) if lease.held.is_none() => {
                let until = now.after(wait.min(deny_for));
                lease.settled = Some((KeyAnswer::Denied(Box::new(decision.clone())), until));
            }
            // There is room again: begin anew, carefully.
            (true, _) if lease.size <= 1 || lease.was_refused => {
                lease.was_refused = false;
                let room = |units: Option<u64>| units.map_or(first, |units| units / 4);
                lease.size = first.min(room(decision.remaining)).min(room(decision.limit)).max(1);
            }
            _ => {}
        }
    }

    /// What has expired, to be settled.
    pub(super) fn expire(&mut self, now: Time) -> Vec<Returned> {
        let life = self.config.life;
        let returned = self.keys.values_mut().filter_map(|lease| lease.expire(life, now)).collect();
        self.keys.retain(|_, lease| !lease.is_idle(life, now));
        returned
    }

    /// Everything at hand, to be settled.
    pub(super) fn drain(&mut self) -> Vec<Returned> {
        self.keys.values_mut().filter_map(|lease| lease.held.take().map(HeldUnits::returned)).collect()
    }

    pub(super) fn units_held(&self) -> u64 {
        self.keys.values().filter_map(|lease| lease.held.as_ref()).map(|held| held.units - held.spent).sum()
    }

    /// Whether there is room for another key.
    fn make_room(&mut self, now: Time) -> bool {
        if self.keys.len() >= self.config.keys_max {
            let life = self.config.life;
            self.keys.retain(|_, lease| !lease.is_idle(life, now));
        }
        self.keys.len() < self.config.keys_max
    }
}

impl KeyLease {
    fn new(most: u64, now: Time) -> KeyLease {
        KeyLease {
            held: None,
            size: (most / 10).max(1),
            was_refused: false,
            refilling: None,
            settled: None,
            used_at: now,
        }
    }

    fn step(&mut self, cost: u64, most: u64, now: Time) -> LeaseStep {
        if let Some(held) = &mut self.held
            && cost <= held.units - held.spent
        {
            held.spent += cost;
            let decision = Box::new(held.decision());
            if held.spent == held.units {
                self.held = None; // as estimated: there is nothing to settle
            }
            return LeaseStep::Decided(decision);
        }
        if let Some((answer, until)) = &self.settled {
            match answer {
                // Never longer than it was told, also if the clock steps back.
                _ if now >= *until || until.since(now) > ONE_BY_ONE_FOR => self.settled = None,
                KeyAnswer::Denied(decision) => return LeaseStep::Decided(decision.clone()),
                KeyAnswer::Failed(outage) => return LeaseStep::Failed(outage.clone()),
                KeyAnswer::OneByOne => return LeaseStep::AskOnce,
            }
        }
        if let Some((refilling, _)) = &self.refilling {
            return LeaseStep::Wait(refilling.subscribe());
        }
        // A request that takes most of a refill gains nothing by it; units at hand are kept for smaller ones.
        if self.held.is_some() || cost.saturating_mul(2) > self.size {
            if cost.saturating_mul(2) > most || self.size <= 1 || self.was_refused {
                return LeaseStep::AskOnce;
            }
            self.size = self.size.max(cost.saturating_mul(2)).min(most);
        }
        self.refilling = Some((watch::channel(()).0, now));
        LeaseStep::Refill(self.size)
    }

    /// The server refused the units: fewer next time, or one by one, where the true wait is known.
    fn refused(&mut self, units: u64, decision: &RemoteDecision, now: Time, deny_for: Span) {
        let left = decision.remaining.unwrap_or(0);
        self.was_refused = true;
        self.size = (units / 2).min(left).min(decision.limit.map_or(left, |limit| limit / 4)).max(1);
        if self.size <= 1 {
            self.settled = Some((KeyAnswer::OneByOne, now.after(deny_for)));
        }
    }

    /// Takes away what is older than its life; a clock that stepped back behind its beginning ends it too.
    fn expire(&mut self, life: Span, now: Time) -> Option<Returned> {
        let expired = |held: &mut HeldUnits| now < held.taken_at || now.since(held.taken_at) >= life;
        self.held.take_if(expired).map(HeldUnits::returned)
    }

    fn is_idle(&self, life: Span, now: Time) -> bool {
        let settled = self.settled.as_ref().is_none_or(|(_, until)| now >= *until);
        self.held.is_none() && self.refilling.is_none() && settled && now.since(self.used_at) >= life
    }
}

impl HeldUnits {
    /// The decision that a caller sees.
    fn decision(&self) -> RemoteDecision {
        let left = self.units - self.spent;
        RemoteDecision {
            remaining: self.decision.remaining.map(|remaining| remaining.saturating_add(left)),
            mode: Cow::Borrowed("lease"),
            ..RemoteDecision::clone(&self.decision)
        }
    }

    fn returned(self) -> Returned {
        Returned { receipt: self.receipt, spent: self.spent }
    }
}
