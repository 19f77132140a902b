//! The charges of one decision, and the rules that they are of.

use smallvec::SmallVec;
use tollgate_core::{Ask, Charge, Enforcement, Purpose, Request};

use super::RuleSet;
use super::facts::RequestError;
use super::rule::{Rule, RuleId};

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
            if !sink.add(applied.rule, Charge { ask, ..*charge }, applied.factor) {
                let name = rules.rule(applied.rule).map_or("", |rule| rule.name.as_str());
                return Err(RequestError::mixed(name));
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
        let separate = self.charges.separate;
        let all = &mut self.charges.charges;
        let twin = if separate { None } else { all.iter().position(|other| other.bucket == charge.bucket) };
        let index = match twin {
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
