//! Matching: evaluates the conditions of the candidates, and makes the charges of the rules that apply.

use smallvec::SmallVec;
use tollgate_core::{Charge, Enforcement, LimitError, Request, Time};
use tollgate_rules::spec::{Align, Unmetered};

use super::attributes::AttrId;
use super::facts::{RequestError, RequestFacts};
use super::index::Candidates;
use super::rule::{Conditions, Rule, RuleId};
use super::{CompiledNamespace, RuleSet};
use crate::lookup::{IndexedEndpoint, IndexedMatcher};

/// The charges of one decision: one per bucket, and the rules that apply with their charges.
///
/// Reusable: [`clear`](Charges::clear) keeps the memory. Four of each fit inline, and no more: a decision that waits
/// for a store is moved to the heap, and a move copies the inline capacity, used or not.
#[derive(Debug, Default)]
pub struct Charges {
    /// Charges for the store, one per bucket.
    pub charges: SmallVec<[Charge; 4]>,
    /// Rules that apply, in the order of the set.
    pub applied: SmallVec<[AppliedRule; 4]>,
    /// Chooses the shard of a rule with shards; any uniform number.
    pub random: u64,
    /// Ignore shards: one bucket with the whole limit.
    pub whole: bool,
    /// Set the identity of each charge, for stores that keep the buckets of one identity together.
    pub identities: bool,
    /// Treat every rule as a shadow rule, which never denies. Exemptions do not change.
    pub shadowed: bool,
    pub(super) requests: u16,
}

/// One rule that applies to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedRule {
    /// The rule.
    pub rule: RuleId,
    /// Index of the request among those decided together.
    pub request: u16,
    /// Index into [`Charges::charges`]; `None` if the rule is unlimited for this request.
    pub charge: Option<u16>,
    /// Units that the rule charges per unit of its meter.
    pub factor: u64,
}

impl Charges {
    /// Removes all charges and keeps the memory.
    pub fn clear(&mut self) {
        self.charges.clear();
        self.applied.clear();
        self.requests = 0;
    }

    /// Requests added since the last [`clear`](Charges::clear).
    pub fn requests(&self) -> u16 {
        self.requests
    }

    /// Whether a denial by the rule denies the request.
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

/// Adds the charges of one request.
pub(super) struct ChargeSink<'a> {
    charges: &'a mut Charges,
    request: u16,
}

impl ChargeSink<'_> {
    pub(super) fn terms(&self) -> ChargeTerms {
        self.charges.terms()
    }

    pub(super) fn add_unlimited(&mut self, rule: RuleId) {
        self.charges.applied.push(AppliedRule { rule, request: self.request, charge: None, factor: 0 });
    }

    /// Adds a charge, or joins it with the charge of the same bucket: a store gets one charge per bucket. `false` if
    /// the two operations cannot be joined.
    pub(super) fn add(&mut self, rule: RuleId, charge: Charge, factor: u64) -> bool {
        let all = &mut self.charges.charges;
        let index = match all.iter().position(|other| other.bucket == charge.bucket) {
            None => {
                all.push(charge);
                all.len() - 1
            }
            Some(index) => {
                let twin = all.get_mut(index).filter(|twin| twin.limit == charge.limit);
                match twin.and_then(|twin| twin.ask.join(charge.ask).map(|ask| twin.ask = ask)) {
                    Some(()) => index,
                    None => return false,
                }
            }
        };
        let applied = AppliedRule { rule, request: self.request, charge: u16::try_from(index).ok(), factor };
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
            RuleEvaluation::Charge(charge, factor) if sink.add(rule.id, charge, factor) => {}
            RuleEvaluation::Charge(..) => return Err(RequestError::mixed(&rule.name)),
            RuleEvaluation::Unlimited => sink.add_unlimited(rule.id),
            RuleEvaluation::BadLimit(error) => return Err(RequestError::bad_limit(&error)),
            RuleEvaluation::Unmetered if rule.spec.unmetered == Unmetered::Reject => {
                return Err(RequestError::missing_meter(&rule.name, &rule.meters));
            }
            RuleEvaluation::Missing | RuleEvaluation::NoSlot | RuleEvaluation::Unmetered => {}
        }
    }
    Ok(())
}

/// Options of a decision that affect its charges; see [`Charges`].
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

/// The result of evaluating a matching rule.
pub(super) enum RuleEvaluation {
    /// The charge, and the units that the rule charges per unit of its meter.
    Charge(Charge, u64),
    /// The rule, or the client's override of it, sets no limit.
    Unlimited,
    /// A key part is missing.
    Missing,
    /// It counts slots, and the request has none.
    NoSlot,
    /// The request carries none of its meters.
    Unmetered,
    /// The limit of the request is invalid.
    BadLimit(LimitError),
}

impl RuleEvaluation {
    /// Whether the rule applies to the request.
    pub(super) fn applies(&self) -> bool {
        matches!(self, RuleEvaluation::Charge(..) | RuleEvaluation::Unlimited)
    }
}

/// Evaluates a matching rule. Not inlined: it is long, and has two callers on the hot path.
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
    if let Some(quota) = &rule.quota {
        limit = quota.at(limit, |id| facts.value(id), |start| rule.granted(facts, start, wall), wall);
    }
    let mut chosen = None;
    if rule.shards() > 1 && !terms.whole {
        // A slot is renewed and released later, so its id chooses the shard.
        let random = request.slot.map_or(terms.random, |slot| slot.0 as u64 ^ (slot.0 >> 64) as u64);
        let shard = random % rule.shards();
        chosen = Some(shard);
        hasher.word(shard);
        limit = rule.shard(limit, shard);
    }
    let Some(amount) = rule.metered(request) else { return RuleEvaluation::Unmetered };
    let factor = rule.factor(facts);
    let Some(ask) = rule.ask(&limit, request, amount.saturating_mul(factor)) else { return RuleEvaluation::NoSlot };
    let bucket = hasher.finish();
    if rule.spec.limit.as_ref().is_some_and(|spec| spec.align == Align::Key) {
        limit = rule.aligned(limit, bucket);
    }
    let soft = rule.soft_at(&limit);
    if let Some(soft) = soft {
        limit = limit.with_debt(soft.excess);
    }
    let charge = Charge {
        bucket,
        limit,
        ask,
        enforcement: terms.enforcement(rule),
        count_denied: rule.spec.count_denied,
        soft,
        owner: rule.owner,
        identity: if terms.identities { rule.identity(facts, chosen) } else { 0 },
        sharing: rule.sharing,
    };
    RuleEvaluation::Charge(charge, factor)
}

/// Matching rules that exempt the request from others.
///
/// Only a rule that applies can exempt: omitting a key part must not bypass the rules that it replaces. `replaces`
/// comes first, and a replaced rule replaces no other; files with a cycle are rejected. Then unlimited rules without
/// `replaces` exempt from all limited rules.
pub(super) struct Exemptions<'a> {
    by: SmallVec<[&'a Rule; 4]>,
}

impl<'a> Exemptions<'a> {
    /// A shadow rule exempts from nothing: it must not change decisions.
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

impl Conditions {
    #[inline]
    pub(super) fn hold(&self, facts: &RequestFacts<'_>) -> bool {
        self.attributes.iter().all(|(id, matcher)| attribute_holds(*id, matcher, facts))
            && self.endpoint.as_ref().is_none_or(|endpoint| endpoint_holds(endpoint, facts))
    }
}

/// An absent attribute matches no condition, not even `*` or a negation.
pub(super) fn attribute_holds(id: AttrId, matcher: &IndexedMatcher, facts: &RequestFacts<'_>) -> bool {
    match id {
        AttrId::IP => facts.ip().is_some_and(|bits| matcher.matches_address(bits)),
        _ => facts.value(id).is_some_and(|value| matcher.matches(value)),
    }
}

pub(super) fn endpoint_holds(matcher: &IndexedEndpoint, facts: &RequestFacts<'_>) -> bool {
    facts.endpoint().is_some_and(|(method, path)| matcher.matches(method, path))
}

impl Rule {
    /// What the rule charges per unit of its meter.
    pub(super) fn factor(&self, facts: &RequestFacts<'_>) -> u64 {
        let case = self.costs.iter().find(|(conditions, _)| conditions.hold(facts));
        case.map_or(1, |(_, cost)| *cost)
    }

    /// The amount of the rule's meter; `None` if the request carries none of it.
    #[inline]
    pub(super) fn metered(&self, request: &Request<'_>) -> Option<u64> {
        match self.meters.is_empty() {
            true => Some(request.cost),
            false => self.weighed(request),
        }
    }

    fn weighed(&self, request: &Request<'_>) -> Option<u64> {
        let carried = self.meters.iter().filter_map(|(name, weight)| Some((request.amount(name)?, *weight)));
        // `requests` is carried by every request: alone it does not make a request one of this meter.
        let named = self.meters.iter().any(|(name, _)| name != Request::REQUESTS && request.amount(name).is_some());
        let sum = |total: u64, (amount, weight): (u64, u64)| total.saturating_add(amount.saturating_mul(weight));
        (named || self.counts_only_requests()).then(|| carried.fold(0, sum))
    }

    /// The meters that it counts besides `requests`.
    pub(super) fn meter_names(&self) -> Vec<String> {
        self.meters.iter().map(|(name, _)| name.clone()).collect()
    }

    fn counts_only_requests(&self) -> bool {
        self.meters.iter().all(|(name, _)| name == Request::REQUESTS)
    }
}
