//! From the rules that match to the charges they make.

use smallvec::SmallVec;
use tollgate_core::{Charge, Request, Time};

use super::facts::Facts;
use super::index::Candidates;
use super::rule::{Rule, RuleId};
use super::{Namespace, RuleSet};
use crate::spec::Align;

/// The charges of one decision: one entry per bucket, and for every rule that applied which bucket it charges.
///
/// Reusable: [`clear`](Charges::clear) keeps the memory. Sixteen of each fit without allocating.
#[derive(Debug, Default)]
pub struct Charges {
    /// What the store is asked, each bucket once.
    pub charges: SmallVec<[Charge; 16]>,
    /// Which rule made which charge, in the order of the rules.
    pub applied: SmallVec<[Applied; 16]>,
    /// Chooses among the sub-buckets of a rule with shards; any evenly spread number.
    pub lot: u64,
    requests: u16,
}

/// One rule that applies to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The rule.
    pub rule: RuleId,
    /// Which of the requests decided together, from 0.
    pub request: u16,
    /// Its place in [`Charges::charges`]; `None` if the rule is unlimited for this request.
    pub charge: Option<u16>,
}

impl Charges {
    /// Forgets all charges, keeps the memory.
    pub fn clear(&mut self) {
        self.charges.clear();
        self.applied.clear();
        self.requests = 0;
    }

    /// Requests added since the last [`clear`](Charges::clear).
    pub fn requests(&self) -> u16 {
        self.requests
    }

    pub(super) fn next_request(&mut self) -> u16 {
        let number = self.requests;
        self.requests = number.saturating_add(1);
        number
    }

    pub(super) fn place(&mut self, request: u16) -> Place<'_> {
        Place { charges: self, request }
    }
}

/// Where the charges of one request go.
pub(super) struct Place<'a> {
    charges: &'a mut Charges,
    request: u16,
}

impl Place<'_> {
    fn add_unlimited(&mut self, rule: RuleId) {
        self.charges.applied.push(Applied { rule, request: self.request, charge: None });
    }

    /// Adds a charge, or the cost of one to the charge that the same bucket already has: a store sees a bucket once.
    fn add(&mut self, rule: RuleId, charge: Charge) {
        let all = &mut self.charges.charges;
        let place = match all.iter().position(|other| other.bucket == charge.bucket) {
            Some(place) => place,
            None => {
                all.push(charge);
                let applied = Applied { rule, request: self.request, charge: u16::try_from(all.len() - 1).ok() };
                return self.charges.applied.push(applied);
            }
        };
        if let Some(twin) = all.get_mut(place) {
            twin.ask = join(twin, &charge);
        }
        self.charges.applied.push(Applied { rule, request: self.request, charge: u16::try_from(place).ok() });
    }
}

/// Both asks of one bucket as one.
fn join(a: &Charge, b: &Charge) -> tollgate_core::Ask {
    use tollgate_core::Ask;
    let sum = a.ask.cost().saturating_add(b.ask.cost());
    match (a.ask, b.ask) {
        (Ask::Hold(_) | Ask::Renew(_), _) => a.ask,
        (Ask::Force(_), _) | (_, Ask::Force(_)) => Ask::Force(sum),
        (Ask::Peek(_), Ask::Peek(_)) => Ask::Peek(sum),
        _ => Ask::Consume(sum),
    }
}

/// Adds the charges of every rule that applies.
#[inline]
pub(super) fn collect(
    set: &RuleSet,
    namespace: &Namespace,
    request: &Request<'_>,
    facts: &Facts<'_>,
    wall: Time,
    mut place: Place<'_>,
) {
    let mut matched: SmallVec<[&Rule; 16]> = SmallVec::new();
    let mut candidates = Candidates::new();
    namespace.index.find(facts, &mut candidates);
    for rule in candidates.iter().filter_map(|id| set.rule(*id)) {
        if rule.conditions.hold(facts) {
            matched.push(rule);
        }
    }
    let exempt = Exemptions::of(&matched);
    for rule in matched.iter().filter(|rule| !exempt.covers(rule)) {
        match charge_of(rule, request, facts, wall, place.charges.lot) {
            Answer::Charge(charge) => place.add(rule.id, charge),
            Answer::Unlimited => place.add_unlimited(rule.id),
            Answer::Missing | Answer::NoSlot => {}
        }
    }
}

/// What a matching rule makes of a request.
pub(super) enum Answer {
    Charge(Charge),
    /// The rule, or the client's override of it, sets no limit.
    Unlimited,
    /// A key part is missing.
    Missing,
    /// It counts slots, and the request holds none.
    NoSlot,
}

#[inline]
pub(super) fn charge_of(rule: &Rule, request: &Request<'_>, facts: &Facts<'_>, wall: Time, lot: u64) -> Answer {
    let Some(mut limit) = rule.limit else { return Answer::Unlimited };
    let Some(mut hasher) = rule.key(facts) else { return Answer::Missing };
    let other = facts.known.override_of(rule.id, wall);
    if other.is_some_and(|other| other.unlimited) {
        return Answer::Unlimited;
    }
    if let Some(other) = other {
        limit = other.apply(limit, rule.spec.limit.as_ref().is_some_and(|spec| spec.burst.is_some()));
    }
    if rule.spec.shards > 1 {
        let shard = lot % u64::from(rule.spec.shards);
        hasher.word(shard);
        limit = rule.shard(limit, shard);
    }
    let Some(ask) = rule.ask(&limit, request, rule.cost(request, facts)) else { return Answer::NoSlot };
    let bucket = hasher.finish();
    if rule.spec.limit.as_ref().is_some_and(|spec| spec.align == Align::Key) {
        limit = rule.aligned(limit, bucket);
    }
    Answer::Charge(Charge {
        bucket,
        limit,
        ask,
        enforcement: rule.enforcement(),
        count_denied: rule.spec.count_denied,
        soft: rule.soft,
        owner: rule.owner,
    })
}

/// Which of the matching rules another one exempts the request from.
pub(super) struct Exemptions<'a> {
    by: SmallVec<[&'a Rule; 4]>,
}

impl<'a> Exemptions<'a> {
    /// A shadow rule exempts from nothing: it must not change what happens.
    pub(super) fn of(matched: &[&'a Rule]) -> Exemptions<'a> {
        let exempts = |rule: &&&Rule| rule.is_enforced() && (rule.spec.unlimited || !rule.replaces.is_empty());
        Exemptions { by: matched.iter().filter(exempts).copied().collect() }
    }

    /// An unlimited rule that names nobody exempts from all others; one with `replaces` only from those it names.
    pub(super) fn by(&self, rule: &Rule) -> Option<&'a Rule> {
        let covers = |by: &&&Rule| match by.replaces.as_slice() {
            [] => !rule.spec.unlimited,
            named => named.contains(&rule.id),
        };
        self.by.iter().find(covers).copied()
    }

    pub(super) fn covers(&self, rule: &Rule) -> bool {
        !self.by.is_empty() && self.by(rule).is_some()
    }
}
