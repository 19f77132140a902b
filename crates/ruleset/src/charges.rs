//! The charges of one decision, and the rules that they are of: from a request to the digest of each bucket, its limit,
//! and what is asked of it.

use smallvec::SmallVec;
use tollgate_core::{Ask, Charge, Enforcement, Limit, LimitError, Purpose, Request, Time};
use tollgate_rules::spec::{Align, Unmetered};

use super::facts::{RequestError, RequestFacts};
use super::matching::{Candidates, Exemptions};
use super::penalties;
use super::rule::{Rule, RuleId};
use super::{CompiledNamespace, RuleSet};

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
    /// Keep the charges of different requests on one bucket apart, to be joined by [`select`](Charges::select).
    pub separate: bool,
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
    /// Index of the charge that reads whether a penalty is in force.
    pub penalty: Option<u16>,
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

    /// The charges of some of the requests that were collected with [`separate`](Charges::separate), joined as one
    /// decision needs them. `requests` are all of them, and the purpose of each says what becomes of it: a mention is
    /// left out, a peek only reads. Fails if they ask different things of one bucket.
    pub fn select(&self, rules: &RuleSet, requests: &[Request<'_>]) -> Result<Charges, RequestError> {
        let Charges { random, whole, identities, shadowed, requests: count, .. } = *self;
        let mut selected = Charges { random, whole, identities, shadowed, requests: count, ..Charges::default() };
        for applied in &self.applied {
            let request = requests.get(usize::from(applied.request));
            let Some(request) = request.filter(|request| request.purpose != Purpose::Mention) else { continue };
            let mut sink = selected.sink(applied.request);
            let Some(charge) = applied.charge.and_then(|index| self.charges.get(usize::from(index))) else {
                sink.add_unlimited(applied.rule);
                continue;
            };
            let ask = if request.purpose == Purpose::Peek { Ask::Peek(charge.ask.cost()) } else { charge.ask };
            if !sink.add(applied.rule, &Charge { ask, ..*charge }, applied.factor) {
                let name = rules.rule(applied.rule).map_or("", |rule| rule.name.as_str());
                return Err(RequestError::mixed(name));
            }
            if let Some(rule) = rules.rule(applied.rule).filter(|rule| rule.spec.penalty.is_some()) {
                sink.add_penalty(rule, charge);
            }
        }
        Ok(selected)
    }

    /// The charges of one of the requests that were collected separately.
    pub fn of_request(&self, request: u16) -> impl Iterator<Item = &Charge> {
        let own = self.applied.iter().filter(move |applied| applied.request == request);
        own.filter_map(|applied| self.charges.get(usize::from(applied.charge?)))
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

impl RuleSet {
    /// Adds the charges of one request to `charges`. Pure: the same request, time and random number give the same
    /// charges. Several requests that are added to the same `charges` are decided together, all or nothing.
    ///
    /// An invalid request is an error and adds nothing.
    pub fn charges(&self, request: &Request<'_>, wall: Time, charges: &mut Charges) -> Result<(), RequestError> {
        let number = charges.next_request();
        let Some(namespace) = self.namespaces.get(request.namespace) else { return Ok(()) };
        if let Some(domain) = &namespace.domain {
            let sink = charges.sink(number);
            return domain.collect(self, &namespace.descriptor(request, wall), &[], sink);
        }
        if let Some(values) = namespace.rewritten(request) {
            return values.with(request, |request| self.charge_rules(namespace, request, wall, charges.sink(number)));
        }
        self.charge_rules(namespace, request, wall, charges.sink(number))
    }

    #[inline]
    fn charge_rules(
        &self,
        namespace: &CompiledNamespace,
        request: &Request<'_>,
        wall: Time,
        sink: ChargeSink<'_>,
    ) -> Result<(), RequestError> {
        let mut facts = RequestFacts::new(namespace, wall);
        facts.gather(namespace, request, self.secret)?;
        namespace.know_meters(request)?;
        if request.purpose == Purpose::Mention {
            return Ok(());
        }
        collect(self, namespace, request, &facts, wall, sink)
    }

    /// Adds the charges of requests that are decided together. In a domain of Envoy files, the rule of one request may
    /// replace the rules of others.
    pub fn charges_of_all(
        &self,
        requests: &[Request<'_>],
        wall: Time,
        charges: &mut Charges,
    ) -> Result<(), RequestError> {
        let [first, _, ..] = requests else {
            return requests.iter().try_for_each(|request| self.charges(request, wall, charges));
        };
        let mut replaced = SmallVec::new();
        let namespace = |request: &Request<'_>| self.namespaces.get(request.namespace);
        let domain = |request: &Request<'_>| namespace(request)?.domain.as_deref();
        // Only domains have rules that replace those of other requests.
        if domain(first).is_none() {
            return requests.iter().try_for_each(|request| self.charges(request, wall, charges));
        }
        for request in requests {
            if let Some(domain) = domain(request) {
                domain.add_replaced(self, request, &mut replaced);
            }
        }
        requests.iter().try_for_each(|request| match namespace(request).zip(domain(request)) {
            Some((namespace, domain)) => {
                let number = charges.next_request();
                domain.collect(self, &namespace.descriptor(request, wall), &replaced, charges.sink(number))
            }
            None => self.charges(request, wall, charges),
        })
    }
}

/// Adds the charges of every rule that applies.
#[inline]
fn collect(
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
        match &charge_of(rule, request, facts, wall, terms) {
            RuleEvaluation::Charge(charge, factor) if sink.add(rule.id, charge, *factor) => {
                if rule.spec.penalty.is_some() {
                    sink.add_penalty(rule, charge);
                }
            }
            RuleEvaluation::Charge(..) => return Err(RequestError::mixed(&rule.name)),
            RuleEvaluation::Unlimited => sink.add_unlimited(rule.id),
            RuleEvaluation::BadLimit(error) => return Err(RequestError::bad_limit(error)),
            RuleEvaluation::Unmetered if rule.spec.unmetered == Unmetered::Reject => {
                return Err(RequestError::missing_meter(&rule.name, &rule.meters));
            }
            RuleEvaluation::Missing | RuleEvaluation::NoSlot | RuleEvaluation::Unmetered => {}
        }
    }
    Ok(())
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
        self.charges.applied.push(AppliedRule { rule, request: self.request, charge: None, factor: 0, penalty: None });
    }

    /// Adds a charge, or joins it with the charge of the same bucket: a store gets one charge per bucket. `false` if
    /// the two operations cannot be joined.
    pub(super) fn add(&mut self, rule: RuleId, charge: &Charge, factor: u64) -> bool {
        let separate = self.charges.separate;
        let all = &mut self.charges.charges;
        let twin = if separate { None } else { all.iter().position(|other| other.bucket == charge.bucket) };
        let index = match twin {
            None => {
                all.push(*charge);
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
        let applied =
            AppliedRule { rule, request: self.request, charge: u16::try_from(index).ok(), factor, penalty: None };
        self.charges.applied.push(applied);
        true
    }
}

impl ChargeSink<'_> {
    /// Adds the charge that reads whether a penalty of the charge just added is in force.
    #[cold]
    pub(super) fn add_penalty(&mut self, rule: &Rule, charge: &Charge) {
        let Some(penalty) = penalties::look(rule, charge) else { return };
        let all = &mut self.charges.charges;
        let known = all.iter().position(|other| other.bucket == penalty.bucket);
        let index = known.unwrap_or_else(|| {
            all.push(penalty);
            all.len() - 1
        });
        if let Some(applied) = self.charges.applied.last_mut() {
            applied.penalty = u16::try_from(index).ok();
        }
    }
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
    pub fn metered(&self, request: &Request<'_>) -> Option<u64> {
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
