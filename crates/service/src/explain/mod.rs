//! Explanations as JSON: for every rule whether it applies and if not why, its key, its limit with all defaults filled
//! in, the state of its bucket. The command line renders them as text.

mod effective;
mod explain_request;
mod request;

pub use effective::{effective_json, limit_json};
pub use explain_request::ExplainRequest;
pub use request::Unexplained;

use serde_json::{Map, Value, json};
use tollgate_control::Instant;
use tollgate_core::{Sharing, Time, Wait};
use tollgate_engine::{Decision, Ruling};
use tollgate_ruleset::{ActiveGrant, ActiveOverride};
use tollgate_ruleset::{Applicability, Explanation, KeyPart, RuleId};
use tollgate_store_redis::key::BucketKey;

use crate::render;
use crate::render::{RenderConfig, ResponseOptions};

/// The attribute that rules without `key_by` count by.
const DEFAULT_KEY: &str = "client_key";

/// A request with the state of its buckets and its decision.
#[derive(Debug)]
pub struct ExplainedRequest {
    /// The state of the buckets before.
    pub before: Decision,
    /// What was, or would be, decided.
    pub decision: Decision,
    /// True if buckets are in a shared store, so that their keys there are listed.
    pub shared: bool,
    /// Attributes of the client from the directories.
    pub known: Vec<(String, String)>,
}

impl ExplainedRequest {
    /// Decision and rules; at most `unmatched_max` rules that do not apply, and the number of omitted ones.
    pub fn json(&self, explanations: &[Explanation<'_>], unmatched_max: usize) -> Value {
        let mut left = unmatched_max;
        let is_listed = |explanation: &&Explanation<'_>| {
            let listed = applies(explanation) || left > 0;
            left -= usize::from(listed && !applies(explanation));
            listed
        };
        let listed = explanations.iter().filter(is_listed);
        let rules: Vec<Value> = listed.map(|explanation| self.rule_json(explanation).into()).collect();
        let omitted = explanations.len() - rules.len();
        let known: Map<String, Value> =
            self.known.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        json!({ "decision": decision_json(&self.decision), "client": known, "rules": rules, "omitted": omitted })
    }

    fn rule_json(&self, explanation: &Explanation<'_>) -> Map<String, Value> {
        let rule = explanation.rule;
        let mut fields = effective_json(rule);
        fields.insert("key".to_owned(), key_json(&explanation.key));
        fields.insert("overrides".to_owned(), explanation.overrides.into());
        fields.insert("override".to_owned(), explanation.active_override.as_ref().map(held_json).into());
        if !explanation.grants.is_empty() {
            fields.insert("grants".to_owned(), explanation.grants.iter().map(grant_json).collect());
        }
        fields.insert("applies".to_owned(), applies(explanation).into());
        fields.insert("because".to_owned(), why_not(&explanation.applicability).into());
        if let Applicability::Applies { charge, overridden } = &explanation.applicability {
            fields.insert("bucket".to_owned(), charge.bucket.to_string().into());
            if self.shared && charge.sharing != Sharing::Local {
                let key = BucketKey::of(charge);
                fields.insert("store_key".to_owned(), key.to_string().into());
                fields.insert("slot".to_owned(), key.slot().into());
            }
            fields.insert("overridden".to_owned(), (*overridden).into());
            fields.insert("charged".to_owned(), charge.ask.cost().into());
            let limit = rule.spec.limit.as_ref().map(|spec| limit_json(spec, &charge.limit));
            fields.insert("limit".to_owned(), limit.into());
            if let Some(before) = ruling(&self.before, rule.id).and_then(|ruling| ruling.outcome) {
                fields.insert("used_before".to_owned(), before.used.into());
                fields.insert("remaining_before".to_owned(), before.remaining.into());
            }
            fields.extend(ruling(&self.decision, rule.id).map(outcome_json).unwrap_or_default());
        }
        fields
    }
}

fn applies(explanation: &Explanation<'_>) -> bool {
    matches!(explanation.applicability, Applicability::Applies { .. } | Applicability::Unlimited)
}

/// The override that holds.
fn held_json(held: &ActiveOverride) -> Value {
    let instant = |time: Option<Time>| time.map(|time| Instant::from(time).to_string());
    json!({
        "client_key": held.client_key,
        "requests": held.requests,
        "burst": held.burst,
        "unlimited": held.unlimited,
        "valid_from": instant(held.from),
        "valid_until": instant(held.until),
    })
}

/// A grant that counts.
fn grant_json(grant: &ActiveGrant) -> Value {
    let instant = |time: Time| Instant::from(time).to_string();
    json!({
        "client_key": grant.client_key,
        "amount": grant.units,
        "valid_from": instant(grant.from),
        "valid_until": grant.until.map(instant),
    })
}

/// The parts of a key, as far as a request has them.
pub fn key_json(parts: &[KeyPart]) -> Value {
    parts.iter().map(|part| json!({ "attribute": part.attribute, "value": part.value })).collect()
}

/// The outcome of one rule; without numbers where no store counted.
fn outcome_json(ruling: &Ruling) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("allowed".to_owned(), (!ruling.refused()).into());
    if let Some(outcome) = &ruling.outcome {
        fields.insert("remaining".to_owned(), outcome.remaining.into());
        fields.insert("reset_after_ms".to_owned(), outcome.reset_after.millis_ceil().into());
        match outcome.wait {
            Wait::None => {}
            Wait::For(wait) => drop(fields.insert("retry_after_ms".to_owned(), wait.millis_ceil().into())),
            Wait::Never => drop(fields.insert("never".to_owned(), true.into())),
        }
    }
    fields
}

/// A decision as `/v1/check` answers it.
pub fn decision_json(decision: &Decision) -> Value {
    let mut text = Vec::new();
    render::write_body(decision, &ResponseOptions::default(), &RenderConfig::default(), &mut text);
    serde_json::from_slice(&text).unwrap_or_default() // what we write is JSON
}

/// The ruling of a rule in a decision.
fn ruling(decision: &Decision, rule: RuleId) -> Option<&Ruling> {
    decision.rulings().iter().find(|ruling| ruling.rule == rule)
}

/// Why a rule does not apply.
pub fn why_not(standing: &Applicability<'_>) -> Option<String> {
    Some(match standing {
        Applicability::Applies { .. } | Applicability::Unlimited => return None,
        Applicability::Off => "its mode is off".to_owned(),
        Applicability::NoMatch { attribute, wanted, found: Some(found) } => {
            format!("{attribute} should be {wanted}, is {found}")
        }
        Applicability::NoMatch { attribute, wanted, found: None } => {
            format!("{attribute} should be {wanted}, the request has none")
        }
        Applicability::Exempted { by } => format!("{} exempts the request from it", by.name),
        Applicability::MissingKey { part } if part == DEFAULT_KEY => {
            format!("it counts by {part}, as a rule without `key_by` does, and the request has none")
        }
        Applicability::MissingKey { part } => format!("it counts by {part}, the request has none"),
        Applicability::Unmetered { meters } => {
            format!("it counts {}, and the request carries none of it", meters.join(", "))
        }
        Applicability::NoSlot => "it counts requests in flight, and this one holds no slot".to_owned(),
    })
}
