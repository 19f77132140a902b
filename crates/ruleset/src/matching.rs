//! Matching: evaluates the conditions of the candidates, and makes the charges of the rules that apply: the digest of the
//! bucket, the limit, and what is asked of it.

use smallvec::SmallVec;
use tollgate_core::{Charge, KeyHasher, Limit, LimitError, Request, Time};
use tollgate_rules::path::PathCase;
use tollgate_rules::spec::{Align, Missing, Unmetered};

use super::attributes::AttrId;
use super::charges::{ChargeSink, ChargeTerms};
use super::facts::{RequestError, RequestFacts};
use super::index::Candidates;
use super::rule::{Conditions, Rule};
use super::{CompiledNamespace, RuleSet};
use crate::lookup::{IndexedEndpoint, IndexedMatcher, LowercasePath};

/// Precedes the value of a fallback attribute: `client_key` if `api_key` is absent. No length is as large.
const BORROWED: u64 = u64::MAX - 1;

/// Precedes a client key that is an address, in canonical form.
const ADDRESS: u64 = u64::MAX - 2;

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
    if rule.reserved_by.is_some() {
        limit = rule.unreserved(limit, facts);
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
    /// The limit without the slots that are reserved for more important requests than this one.
    pub(super) fn unreserved(&self, limit: Limit, facts: &RequestFacts<'_>) -> Limit {
        let reserved = self.spec.limit.as_ref().and_then(|spec| spec.reserved.as_ref());
        match (reserved, self.reserved_by) {
            (Some(reserved), Some(class)) if !facts.value(class).is_some_and(|class| reserved.is_for(class)) => {
                let shared = reserved.shared(limit.capacity());
                limit.with_requests(shared, shared).unwrap_or(limit)
            }
            _ => limit,
        }
    }

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

impl Rule {
    /// The bucket's digest before sharding; `None` if a key part is missing and the rule skips such requests.
    #[inline]
    pub(super) fn key(&self, facts: &RequestFacts<'_>) -> Option<KeyHasher> {
        let mut hasher = self.hasher;
        for part in &self.key {
            match part_of(part, facts) {
                Some((id, borrowed)) => {
                    if borrowed {
                        hasher.word(BORROWED);
                    }
                    if part.len() > 1 {
                        hasher.word(id.index() as u64);
                    }
                    self.absorb(&mut hasher, id, facts);
                }
                None if self.spec.missing == Missing::Share => hasher.missing(),
                None => return None,
            }
        }
        Some(hasher)
    }

    /// The identity of the bucket's owner: namespace and first part of the key, so that a store can keep all buckets of
    /// one client together. Global rules have the namespace only. Shards of a hot bucket have different identities, so
    /// that they are stored apart.
    pub(super) fn identity(&self, facts: &RequestFacts<'_>, shard: Option<u64>) -> u32 {
        let mut hasher = self.identity;
        if let Some((id, _)) = self.key.first().and_then(|part| part_of(part, facts)) {
            hasher.word(id.index() as u64);
            self.absorb(&mut hasher, id, facts);
        }
        if let Some(shard) = shard {
            hasher.word(shard);
        }
        let [bits, _] = hasher.finish().0;
        bits as u32
    }

    fn absorb(&self, hasher: &mut KeyHasher, id: AttrId, facts: &RequestFacts<'_>) {
        match id {
            AttrId::IP => {
                let key = facts.ip_key().map_or(0, |key| key.bits());
                hasher.part(&key.to_be_bytes());
            }
            AttrId::ENDPOINT => self.absorb_endpoint(hasher, facts),
            AttrId::CLIENT_KEY if let Some(key) = facts.client_ip() => {
                hasher.word(ADDRESS);
                hasher.part(&key.bits().to_be_bytes());
            }
            _ => hasher.part(facts.value(id).unwrap_or_default().as_bytes()),
        }
    }

    /// Absorbs the path, with `{id}` for parameters. The method is absorbed only if the pattern has methods: otherwise
    /// every invented method would have its own bucket.
    fn absorb_endpoint(&self, hasher: &mut KeyHasher, facts: &RequestFacts<'_>) {
        let Some((method, path)) = facts.endpoint() else { return hasher.missing() };
        let pattern = self.conditions.endpoint.as_ref().and_then(|matcher| matcher.pattern_of(method, path));
        match pattern {
            Some(pattern) => {
                match method {
                    Some(method) if !pattern.methods.is_empty() => hasher.part(method.as_bytes()),
                    _ => hasher.missing(),
                }
                let path = pattern.path.template_of(path);
                match pattern.path.case {
                    PathCase::Sensitive => hasher.part(path.as_bytes()),
                    PathCase::Insensitive => hasher.part(LowercasePath::of(&path).as_str().as_bytes()),
                }
            }
            None => {
                hasher.missing();
                hasher.part(path.as_bytes());
            }
        }
    }

    /// A key part for display.
    pub(super) fn key_text(&self, id: AttrId, facts: &RequestFacts<'_>) -> String {
        match id {
            AttrId::IP => facts.ip_key().map(|key| key.to_string()).unwrap_or_default(),
            AttrId::ENDPOINT => {
                let (method, path) = facts.endpoint().unwrap_or((None, ""));
                match self.conditions.endpoint.as_ref().and_then(|matcher| matcher.pattern_of(method, path)) {
                    Some(pattern) => pattern.path.template_of(path).into_owned(),
                    None => path.to_owned(),
                }
            }
            _ => facts.value(id).unwrap_or_default().to_owned(),
        }
    }
}

/// The attribute that fills a key part: the first one present, else the client key (then `true`) if one of them falls
/// back to it.
pub(super) fn part_of(part: &[AttrId], facts: &RequestFacts<'_>) -> Option<(AttrId, bool)> {
    // Among alternatives an empty value counts as absent: an empty header must not hide the next alternative.
    let filled = |id: &&AttrId| present(**id, facts) && (part.len() == 1 || facts.value(**id) != Some(""));
    if let Some(id) = part.iter().find(filled) {
        return Some((*id, false));
    }
    let borrows = part.iter().any(|id| id.falls_back()) && facts.has(AttrId::CLIENT_KEY);
    borrows.then_some((AttrId::CLIENT_KEY, true))
}

fn present(id: AttrId, facts: &RequestFacts<'_>) -> bool {
    match id {
        AttrId::IP => facts.ip().is_some(),
        AttrId::ENDPOINT => facts.endpoint().is_some(),
        _ => facts.has(id),
    }
}
