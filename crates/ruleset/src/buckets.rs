//! The buckets that rules may have for a client, as far as the given attributes determine their keys.
//!
//! Unlike a decision, this covers all requests of a client: a condition on an attribute that is not given may hold for
//! some of them, so it is assumed to hold, and listed.

use tollgate_core::{Charge, Request, SlotId, Time};
use tollgate_rules::spec::Enforcement;

use super::charges::{ChargeTerms, Exemptions, RuleEvaluation, charge_of};
use super::explain::{Applicability, KeyPart, key_parts, mismatches, missing_part};
use super::facts::RequestFacts;
use super::rule::Rule;
use super::{CompiledNamespace, RuleSet};

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
    (0..rule.parts()).map(charge).collect()
}

fn terms(random: u64) -> ChargeTerms {
    ChargeTerms { identities: true, random, ..ChargeTerms::default() }
}
