//! Explains why a rule applies to a request or not, with the same evaluation as the hot path.

use tollgate_core::{Charge, Limit, Request, SlotId, Time};
use tollgate_rules::spec::Enforcement;

use super::charges::{ChargeTerms, RuleEvaluation, charge_of};
use super::facts::RequestFacts;
use super::matching::{Exemptions, attribute_holds, endpoint_holds, part_of};
use super::rule::Rule;
use super::{CompiledNamespace, RuleSet};
use crate::directory::{ActiveGrant, ActiveOverride};

/// How one rule evaluates one request.
#[derive(Debug)]
pub struct Explanation<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// Whether it applies, and if not, why.
    pub applicability: Applicability<'a>,
    /// The parts of its key; a part that the request lacks has no value.
    pub key: Vec<KeyPart>,
    /// Number of overrides of this rule, for all clients.
    pub overrides: usize,
    /// The override that is in force for this request.
    pub active_override: Option<ActiveOverride>,
    /// The grants that count for this request.
    pub grants: Vec<ActiveGrant>,
}

/// Whether a rule applies.
#[derive(Debug)]
pub enum Applicability<'a> {
    /// It applies and makes this charge.
    Applies {
        /// The charge.
        charge: Box<Charge>,
        /// An override or the request changed the limit.
        overridden: bool,
    },
    /// It applies and sets no limit for this request.
    Unlimited,
    /// It is switched off.
    Off,
    /// A condition does not hold.
    NoMatch {
        /// The attribute of the condition.
        attribute: String,
        /// The patterns of the rule.
        wanted: String,
        /// The value in the request.
        found: Option<String>,
    },
    /// Another rule exempts the request from it.
    Exempted {
        /// That rule.
        by: &'a Rule,
    },
    /// The request lacks a key part, and the rule skips such requests.
    MissingKey {
        /// The alternatives of that part, joined by `|`.
        part: String,
    },
    /// It counts requests in flight, and this request has no slot.
    NoSlot,
    /// The request carries none of its meters.
    Unmetered {
        /// Their names.
        meters: Vec<String>,
    },
}

/// One part of a key.
#[derive(Debug)]
pub struct KeyPart {
    /// The attribute that fills it, or all alternatives.
    pub attribute: String,
    /// Its value; `None` if the request lacks it.
    pub value: Option<String>,
}

pub(super) fn explain<'a>(
    set: &'a RuleSet,
    namespace: &'a CompiledNamespace,
    request: &Request<'_>,
    facts: &RequestFacts<'_>,
    wall: Time,
) -> Vec<Explanation<'a>> {
    let rules = set.rules.get(namespace.rules.clone()).unwrap_or_default().iter();
    let matched: Vec<&Rule> =
        rules.clone().filter(|rule| rule.spec.mode != Enforcement::Off && rule.conditions.hold(facts)).collect();
    let exempt = Exemptions::of(&matched, |rule| {
        charge_of(rule, request, facts, wall, ChargeTerms { identities: true, ..ChargeTerms::default() }).applies()
    });
    let explained = |rule| {
        let applicability = applicability(rule, namespace, request, facts, wall, &exempt);
        let held = facts.held(namespace, rule, wall, set.secret);
        let grants = match quota_start(&applicability) {
            Some(start) => rule.active_grants(namespace, facts, start, wall, set.secret),
            None => Vec::new(),
        };
        Explanation {
            rule,
            applicability,
            key: key_parts(rule, namespace, facts),
            overrides: namespace.directories.overrides_of(rule),
            active_override: held.map(|(identity, held)| held.shown(identity.client_key())),
            grants,
        }
    };
    rules.map(explained).collect()
}

/// The start of the period of a quota that applies.
fn quota_start(applicability: &Applicability<'_>) -> Option<Time> {
    match applicability {
        Applicability::Applies { charge, .. } if let Limit::Quota(quota) = charge.limit => Some(quota.start()),
        _ => None,
    }
}

fn applicability<'a>(
    rule: &'a Rule,
    namespace: &CompiledNamespace,
    request: &Request<'_>,
    facts: &RequestFacts<'_>,
    wall: Time,
    exempt: &Exemptions<'a>,
) -> Applicability<'a> {
    if rule.spec.mode == Enforcement::Off {
        return Applicability::Off;
    }
    if let Some(mismatch) = mismatches(rule, namespace, facts).next() {
        return mismatch;
    }
    if let Some(by) = exempt.by(rule) {
        return Applicability::Exempted { by };
    }
    match charge_of(rule, request, facts, wall, ChargeTerms { identities: true, ..ChargeTerms::default() }) {
        RuleEvaluation::Charge(charge, _) => {
            let overridden = facts.overrides.of(rule, wall).is_some();
            Applicability::Applies { charge: Box::new(charge), overridden }
        }
        RuleEvaluation::Unlimited => Applicability::Unlimited,
        RuleEvaluation::NoSlot => Applicability::NoSlot,
        RuleEvaluation::Unmetered => Applicability::Unmetered { meters: rule.meter_names() },
        RuleEvaluation::BadLimit(error) => {
            Applicability::NoMatch { attribute: "limit".to_owned(), wanted: error.to_string(), found: None }
        }
        RuleEvaluation::Missing => Applicability::MissingKey { part: missing_part(rule, namespace, facts) },
    }
}

/// The first part of the key that the request lacks: its alternatives, joined by `|`.
pub(super) fn missing_part(rule: &Rule, namespace: &CompiledNamespace, facts: &RequestFacts<'_>) -> String {
    let missing = rule.key.iter().find(|part| part_of(part, facts).is_none());
    let names = missing.into_iter().flatten().map(|id| namespace.attributes.name(*id));
    names.collect::<Vec<_>>().join("|")
}

/// The conditions that do not hold, attributes first.
pub(super) fn mismatches<'r, 'a>(
    rule: &'r Rule,
    namespace: &'r CompiledNamespace,
    facts: &'r RequestFacts<'_>,
) -> impl Iterator<Item = Applicability<'a>> {
    let failing = rule.conditions.attributes.iter().filter(|(id, matcher)| !attribute_holds(*id, matcher, facts));
    let attributes = failing.map(|(id, matcher)| {
        let matcher = &matcher.matcher;
        let any = matcher.any.iter().map(ToString::to_string);
        let none = matcher.none.iter().map(|pattern| format!("!{pattern}"));
        Applicability::NoMatch {
            attribute: namespace.attributes.name(*id).to_owned(),
            wanted: any.chain(none).collect::<Vec<_>>().join(", "),
            found: facts.value(*id).map(ToOwned::to_owned),
        }
    });
    let failing = rule.conditions.endpoint.iter().filter(|matcher| !endpoint_holds(matcher, facts));
    let endpoint = failing.map(|endpoint| {
        let any = endpoint.matcher.any.iter().map(ToString::to_string);
        let none = endpoint.matcher.none.iter().map(|pattern| format!("!{pattern}"));
        Applicability::NoMatch {
            attribute: "endpoint".to_owned(),
            wanted: any.chain(none).collect::<Vec<_>>().join(", "),
            found: facts.endpoint().map(|(method, path)| match method {
                Some(method) => format!("{method} {path}"),
                None => path.to_owned(),
            }),
        }
    });
    attributes.chain(endpoint)
}

pub(super) fn key_parts(rule: &Rule, namespace: &CompiledNamespace, facts: &RequestFacts<'_>) -> Vec<KeyPart> {
    let describe = |part: &Vec<_>| match part_of(part, facts) {
        Some((id, _)) => {
            KeyPart { attribute: namespace.attributes.name(id).to_owned(), value: Some(rule.key_text(id, facts)) }
        }
        None => {
            let names = part.iter().map(|id| namespace.attributes.name(*id));
            KeyPart { attribute: names.collect::<Vec<_>>().join("|"), value: None }
        }
    };
    rule.key.iter().map(describe).collect()
}

/// The buckets of one rule for one client.
#[derive(Debug)]
pub struct ClientBuckets<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// The parts of its key, as far as they are given.
    pub key: Vec<KeyPart>,
    /// Attributes of its conditions that were not given.
    pub assumed: Vec<String>,
    /// One charge per bucket, several for a rule with shards; or why there is none, never [`Applicability::Applies`].
    pub charges: Result<Vec<Charge>, Applicability<'a>>,
}

/// The buckets that rules may have for a client, as far as the given attributes determine their keys. Unlike a decision,
/// this covers all requests of a client: a condition on an attribute that is not given may hold for some of them, so it
/// is assumed to hold, and listed.
pub(super) fn buckets<'a>(
    set: &'a RuleSet,
    namespace: &'a CompiledNamespace,
    request: &Request<'_>,
    facts: &RequestFacts<'_>,
    wall: Time,
) -> Vec<ClientBuckets<'a>> {
    // Every meter, of no amount: buckets of all rules are shown, whatever a request of this client would carry.
    let costs: Vec<(&str, u64)> = namespace.meters.iter().map(|meter| (meter.as_str(), 0)).collect();
    let request = &request.with_costs(&costs);
    let rules = set.rules.iter().filter(|rule| rule.namespace == request.namespace);
    let matched: Vec<&Rule> =
        rules.clone().filter(|rule| rule.spec.mode != Enforcement::Off && rule.conditions.hold(facts)).collect();
    let exempt = Exemptions::of(&matched, |rule| charge_of(rule, request, facts, wall, terms(0)).applies());
    let buckets = |rule: &'a Rule| {
        let (mut assumed, mut contradicted) = (Vec::new(), None);
        for applicability in mismatches(rule, namespace, facts) {
            match applicability {
                Applicability::NoMatch { attribute, found: None, .. } => assumed.push(attribute),
                applicability => contradicted = contradicted.or(Some(applicability)),
            }
        }
        let charges = match (rule.spec.mode, contradicted, exempt.by(rule)) {
            (Enforcement::Off, ..) => Err(Applicability::Off),
            (_, Some(applicability), _) => Err(applicability),
            (_, _, Some(by)) => Err(Applicability::Exempted { by }),
            _ => charges(rule, namespace, request, facts, wall),
        };
        ClientBuckets { rule, key: key_parts(rule, namespace, facts), assumed, charges }
    };
    rules.map(buckets).collect()
}

/// One charge per shard.
fn charges<'a>(
    rule: &Rule,
    namespace: &CompiledNamespace,
    request: &Request<'_>,
    facts: &RequestFacts<'_>,
    wall: Time,
) -> Result<Vec<Charge>, Applicability<'a>> {
    let charge = |shard: u64| {
        // The slot's id chooses the shard of a concurrency rule, the random number that of others.
        let mut request = *request;
        request.slot = Some(SlotId(u128::from(shard)));
        match charge_of(rule, &request, facts, wall, terms(shard)) {
            RuleEvaluation::Charge(charge, _) => Ok(charge),
            RuleEvaluation::Unlimited => Err(Applicability::Unlimited),
            RuleEvaluation::NoSlot => Err(Applicability::NoSlot),
            RuleEvaluation::Unmetered => Err(Applicability::Unmetered { meters: rule.meter_names() }),
            RuleEvaluation::BadLimit(error) => {
                Err(Applicability::NoMatch { attribute: "limit".to_owned(), wanted: error.to_string(), found: None })
            }
            RuleEvaluation::Missing => Err(Applicability::MissingKey { part: missing_part(rule, namespace, facts) }),
        }
    };
    (0..rule.shards()).map(charge).collect()
}

fn terms(random: u64) -> ChargeTerms {
    ChargeTerms { identities: true, random, ..ChargeTerms::default() }
}
