//! From the rules that match to the charges they make.

use smallvec::SmallVec;
use tollgate_core::{Charge, Enforcement, LimitError, Request, Time};

use super::facts::{RequestError, RequestFacts};
use super::index::Candidates;
use super::rule::{Rule, RuleId};
use super::{CompiledNamespace, RuleSet};
use crate::spec::Align;

/// The charges of one decision: one entry per bucket, and for every rule that applied which bucket it charges.
///
/// Reusable: [`clear`](Charges::clear) keeps the memory. Four of each fit without allocating: what waits for a store is
/// moved to the heap, and a move copies all of the room, used or not.
#[derive(Debug, Default)]
pub struct Charges {
    /// What the store is asked, each bucket once.
    pub charges: SmallVec<[Charge; 4]>,
    /// Which rule made which charge, in the order of the rules.
    pub applied: SmallVec<[AppliedRule; 4]>,
    /// Chooses among the sub-buckets of a rule with shards; any evenly spread number.
    pub random: u64,
    /// Ask rules with shards as if they had none: one bucket with the whole limit.
    pub whole: bool,
    /// Tell each charge's identity: for stores that keep the buckets of one identity together.
    pub identities: bool,
    /// Take every rule for a shadow rule: none of them denies. Who is exempt from what stays as it is.
    pub shadowed: bool,
    pub(super) requests: u16,
}

/// One rule that applies to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedRule {
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

    /// Whether a refusal by that rule counts here.
    #[inline]
    pub fn enforces(&self, rule: &Rule) -> bool {
        rule.is_enforced() && !self.shadowed
    }

    fn terms(&self) -> ChargeTerms {
        ChargeTerms { random: self.random, whole: self.whole, identities: self.identities, shadowed: self.shadowed }
    }

    pub(super) fn next_request(&mut self) -> u16 {
        let number = self.requests;
        self.requests = number.saturating_add(1);
        number
    }

    pub(super) fn sink(&mut self, request: u16) -> ChargeSink<'_> {
        ChargeSink { charges: self, request }
    }
}

/// Where the charges of one request go.
pub(super) struct ChargeSink<'a> {
    charges: &'a mut Charges,
    request: u16,
}

impl ChargeSink<'_> {
    pub(super) fn terms(&self) -> ChargeTerms {
        self.charges.terms()
    }

    pub(super) fn add_unlimited(&mut self, rule: RuleId) {
        self.charges.applied.push(AppliedRule { rule, request: self.request, charge: None });
    }

    /// Adds a charge, or the cost of one to the charge that the same bucket already has: a store sees a bucket once.
    /// False if the two ask different things.
    pub(super) fn add(&mut self, rule: RuleId, charge: Charge) -> bool {
        let all = &mut self.charges.charges;
        let place = match all.iter().position(|other| other.bucket == charge.bucket) {
            None => {
                all.push(charge);
                all.len() - 1
            }
            Some(place) => {
                let twin = all.get_mut(place).filter(|twin| twin.limit == charge.limit);
                match twin.and_then(|twin| twin.ask.join(charge.ask).map(|ask| twin.ask = ask)) {
                    Some(()) => place,
                    None => return false,
                }
            }
        };
        let applied = AppliedRule { rule, request: self.request, charge: u16::try_from(place).ok() };
        self.charges.applied.push(applied);
        true
    }
}

/// Adds the charges of every rule that applies.
#[inline]
pub(super) fn collect(
    set: &RuleSet,
    namespace: &CompiledNamespace,
    request: &Request<'_>,
    facts: &RequestFacts<'_>,
    wall: Time,
    mut sink: ChargeSink<'_>,
) -> Result<(), RequestError> {
    let mut matched: SmallVec<[&Rule; 16]> = SmallVec::new();
    let mut candidates = Candidates::new();
    namespace.index.find(facts, namespace.rules.start, &mut candidates);
    for rule in candidates.iter().filter_map(|id| set.rule(*id)) {
        if rule.conditions.hold(facts) {
            matched.push(rule);
        }
    }
    let terms = sink.terms();
    let exempt = Exemptions::of(&matched, |rule| charge_of(rule, request, facts, wall, terms).applies());
    for rule in matched.iter().filter(|rule| !exempt.covers(rule)) {
        match charge_of(rule, request, facts, wall, terms) {
            RuleEvaluation::Charge(charge) if sink.add(rule.id, charge) => {}
            RuleEvaluation::Charge(_) => return Err(RequestError::mixed(&rule.name)),
            RuleEvaluation::Unlimited => sink.add_unlimited(rule.id),
            RuleEvaluation::BadLimit(error) => return Err(RequestError::bad_limit(&error)),
            RuleEvaluation::Missing | RuleEvaluation::NoSlot => {}
        }
    }
    Ok(())
}

/// What does not depend on rule and request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChargeTerms {
    pub(super) random: u64,
    pub(super) whole: bool,
    pub(super) identities: bool,
    pub(super) shadowed: bool,
}

impl ChargeTerms {
    pub(super) fn enforcement(self, rule: &Rule) -> Enforcement {
        if self.shadowed { Enforcement::Shadow } else { rule.enforcement() }
    }
}

/// What a matching rule makes of a request.
pub(super) enum RuleEvaluation {
    Charge(Charge),
    /// The rule, or the client's override of it, sets no limit.
    Unlimited,
    /// A key part is missing.
    Missing,
    /// It counts slots, and the request holds none.
    NoSlot,
    /// The limit that the request brings along is none.
    BadLimit(LimitError),
}

impl RuleEvaluation {
    /// Whether the rule has a say in this request.
    pub(super) fn applies(&self) -> bool {
        matches!(self, RuleEvaluation::Charge(_) | RuleEvaluation::Unlimited)
    }
}

/// Not inlined: it is long, and both who exempts and what is charged ask it.
#[inline(never)]
pub(super) fn charge_of(
    rule: &Rule,
    request: &Request<'_>,
    facts: &RequestFacts<'_>,
    wall: Time,
    terms: ChargeTerms,
) -> RuleEvaluation {
    let Some(mut limit) = rule.limit else { return RuleEvaluation::Unlimited };
    let Some(mut hasher) = rule.key(facts) else { return RuleEvaluation::Missing };
    let other = facts.overrides.of(rule, wall);
    if other.is_some_and(|other| other.is_unlimited()) {
        return RuleEvaluation::Unlimited;
    }
    if let Some(other) = other {
        limit = other.apply(limit, rule.spec.limit.as_ref().is_some_and(|spec| spec.burst.is_some()));
    }
    if let Some(asked) = request.limit.filter(|_| rule.spec.accept_limits) {
        match rule.accept(asked, &mut hasher) {
            Ok(asked) => limit = asked.unwrap_or(limit),
            Err(error) => return RuleEvaluation::BadLimit(error),
        }
    }
    let mut part = None;
    if rule.parts() > 1 && !terms.whole {
        // A slot must be found again, to be renewed and released: its id chooses instead of the lot.
        let random = request.slot.map_or(terms.random, |slot| slot.0 as u64 ^ (slot.0 >> 64) as u64);
        let shard = random % rule.parts();
        part = Some(shard);
        hasher.word(shard);
        limit = rule.shard(limit, shard);
    }
    let Some(ask) = rule.ask(&limit, request, rule.cost(request, facts)) else { return RuleEvaluation::NoSlot };
    let bucket = hasher.finish();
    if rule.spec.limit.as_ref().is_some_and(|spec| spec.align == Align::Key) {
        limit = rule.aligned(limit, bucket);
    }
    let soft = rule.soft_at(&limit);
    if let Some(soft) = soft {
        limit = limit.with_debt(soft.excess);
    }
    RuleEvaluation::Charge(Charge {
        bucket,
        limit,
        ask,
        enforcement: terms.enforcement(rule),
        count_denied: rule.spec.count_denied,
        soft,
        owner: rule.owner,
        identity: if terms.identities { rule.identity(facts, part) } else { 0 },
        sharing: rule.sharing,
    })
}

/// Which of the matching rules another one exempts the request from.
///
/// Only a rule that has a say itself can exempt: one whose key part is missing would otherwise be a way around those it
/// replaces. `replaces` comes first, and a rule that is replaced replaces nobody; files with a cycle are refused. Then
/// unlimited rules that name nobody exempt from all that is limited.
pub(super) struct Exemptions<'a> {
    by: SmallVec<[&'a Rule; 4]>,
}

impl<'a> Exemptions<'a> {
    /// A shadow rule exempts from nothing: it must not change what happens.
    pub(super) fn of(matched: &[&'a Rule], applies: impl Fn(&Rule) -> bool) -> Exemptions<'a> {
        let exempts = |rule: &&&Rule| rule.is_enforced() && (rule.spec.unlimited || !rule.replaces.is_empty());
        Exemptions { by: matched.iter().filter(exempts).filter(|rule| applies(rule)).copied().collect() }
    }

    /// The rule that exempts from `rule`.
    pub(super) fn by(&self, rule: &Rule) -> Option<&'a Rule> {
        let blanket = |by: &&&Rule| by.replaces.is_empty() && !rule.spec.unlimited && self.replaced_by(by).is_none();
        self.replaced_by(rule).or_else(|| self.by.iter().find(blanket).copied())
    }

    fn replaced_by(&self, rule: &Rule) -> Option<&'a Rule> {
        let replaces = |by: &&&Rule| by.replaces.contains(&rule.id) && self.replaced_by(by).is_none();
        self.by.iter().find(replaces).copied()
    }

    pub(super) fn covers(&self, rule: &Rule) -> bool {
        !self.by.is_empty() && self.by(rule).is_some()
    }
}
