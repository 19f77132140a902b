//! The buckets that rules may keep for a client, as far as the given attributes determine their keys.
//!
//! Unlike a decision, this asks about all requests of a client at once: a condition on an attribute that is not given
//! may hold for some of them, so it is assumed to hold, and named.

use tollgate_core::{Charge, Request, SlotId, Time};

use super::charges::{Answer, Exemptions, Terms, charge_of};
use super::explain::{KeyPart, Standing, key_parts, mismatches, missing_part};
use super::facts::Facts;
use super::rule::Rule;
use super::{Namespace, RuleSet};
use crate::spec::Mode;

/// The buckets of one rule for one client.
#[derive(Debug)]
pub struct ClientBuckets<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// The parts of its key, as far as they are given.
    pub key: Vec<KeyPart>,
    /// Attributes that its conditions ask for and that were not given.
    pub assumed: Vec<String>,
    /// One charge per bucket, several for a rule with shards; or why there is none (never [`Standing::Applies`]).
    pub charges: Result<Vec<Charge>, Standing<'a>>,
}

pub(super) fn buckets<'a>(
    set: &'a RuleSet,
    namespace: &'a Namespace,
    request: &Request<'_>,
    facts: &Facts<'_>,
    wall: Time,
) -> Vec<ClientBuckets<'a>> {
    let rules = set.rules.iter().filter(|rule| rule.namespace == request.namespace);
    let matched: Vec<&Rule> =
        rules.clone().filter(|rule| rule.spec.mode != Mode::Off && rule.conditions.hold(facts)).collect();
    let exempt = Exemptions::of(&matched, |rule| charge_of(rule, request, facts, wall, terms(0)).applies());
    let buckets = |rule: &'a Rule| {
        let (mut assumed, mut contradicted) = (Vec::new(), None);
        for standing in mismatches(rule, namespace, facts) {
            match standing {
                Standing::NoMatch { attribute, found: None, .. } => assumed.push(attribute),
                standing => contradicted = contradicted.or(Some(standing)),
            }
        }
        let charges = match (rule.spec.mode, contradicted, exempt.by(rule)) {
            (Mode::Off, ..) => Err(Standing::Off),
            (_, Some(standing), _) => Err(standing),
            (_, _, Some(by)) => Err(Standing::Exempted { by }),
            _ => charges(rule, namespace, request, facts, wall),
        };
        ClientBuckets { rule, key: key_parts(rule, namespace, facts), assumed, charges }
    };
    rules.map(buckets).collect()
}

/// One charge per shard.
fn charges<'a>(
    rule: &Rule,
    namespace: &Namespace,
    request: &Request<'_>,
    facts: &Facts<'_>,
    wall: Time,
) -> Result<Vec<Charge>, Standing<'a>> {
    let charge = |shard: u64| {
        // Shards are chosen by the slot's id where a slot is held, and by a number otherwise.
        let mut request = *request;
        request.slot = Some(SlotId(u128::from(shard)));
        match charge_of(rule, &request, facts, wall, terms(shard)) {
            Answer::Charge(charge) => Ok(charge),
            Answer::Unlimited => Err(Standing::Unlimited),
            Answer::NoSlot => Err(Standing::NoSlot),
            Answer::BadLimit(error) => {
                Err(Standing::NoMatch { attribute: "limit".to_owned(), wanted: error.to_string(), found: None })
            }
            Answer::Missing => Err(Standing::MissingKey { part: missing_part(rule, namespace, facts) }),
        }
    };
    (0..rule.parts()).map(charge).collect()
}

fn terms(lot: u64) -> Terms {
    Terms { identities: true, lot, ..Terms::default() }
}
