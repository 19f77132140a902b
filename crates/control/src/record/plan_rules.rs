//! The rules of plans as rules: named after the plan that contains them, with the condition on the plans that have them.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use tollgate_rules::spec::PLAN;
use tollgate_rules::{KeyBy, PlanSpec, RuleSpec, lint_rule, plan};

use super::rule::widest;
use super::{PlanDraft, PlanRecord, document};
use crate::{FieldError, Instant};

/// A rule of a plan.
#[derive(Clone, Debug)]
pub struct PlanRuleRecord {
    /// The namespace of the plan.
    pub namespace: String,
    /// The plan that contains it.
    pub plan: String,
    /// The name of the rule: `pro.requests`.
    pub rule_id: String,
    /// Its name within plans: `requests`.
    pub name: String,
    /// The rule as in its plan, without its name: with the condition on `plan`, and with the plan that contains it.
    pub document: Map<String, Value>,
    /// When the plan was created.
    pub created_at: Instant,
    /// When the plan was changed.
    pub updated_at: Instant,
    /// The generation of the last change of the plan.
    pub version: i64,
    spec: RuleSpec,
}

impl PlanRuleRecord {
    /// The representation in the API.
    pub fn json(&self) -> Value {
        let mut json = self.document.clone();
        let rest = json!({
            "rule_id": self.rule_id,
            "namespace": self.namespace,
            "name": "",
            "enabled": true,
            "created_at": self.created_at.to_string(),
            "updated_at": self.updated_at.to_string(),
            "version": self.version,
        });
        json.extend(rest.as_object().cloned().unwrap_or_default());
        Value::Object(json)
    }

    /// Warnings: valid, but probably not what was meant.
    pub fn warnings(&self) -> Vec<FieldError> {
        lint_rule(&self.spec).into_iter().map(FieldError::from).collect()
    }
}

/// The rules of these plans, in the order of the plans, which are sorted by namespace. Plans that cannot be read have none.
pub fn plan_rules(plans: &[PlanRecord]) -> Vec<PlanRuleRecord> {
    plans.chunk_by(|one, other| one.namespace == other.namespace).flat_map(of_namespace).collect()
}

fn of_namespace(plans: &[PlanRecord]) -> Vec<PlanRuleRecord> {
    let records: HashMap<&str, &PlanRecord> = plans.iter().map(|plan| (plan.plan_id.as_str(), plan)).collect();
    let specs: Vec<PlanSpec> = plans.iter().filter_map(|plan| plan.spec(&widest()).ok()).collect();
    let rule = |mut spec: RuleSpec| {
        spec.key_by.get_or_insert_with(KeyBy::client);
        let origin = spec.plan.as_deref()?;
        let record = *records.get(origin.plan.as_str())?;
        let is_named = |limit: &&Value| limit.get("name").and_then(Value::as_str) == Some(&origin.name);
        let limit = record.draft.limits.iter().find(is_named)?.as_object()?;
        Some(PlanRuleRecord {
            namespace: record.namespace.clone(),
            plan: origin.plan.clone(),
            rule_id: spec.name.clone()?,
            name: origin.name.clone(),
            document: document_of(limit, &spec, &origin.plan),
            created_at: record.created_at,
            updated_at: record.updated_at,
            version: record.version,
            spec,
        })
    };
    plan::expand(&specs).into_iter().filter_map(rule).collect()
}

/// The fields of a rule as its plan has them, with what makes a rule of the namespace of it.
fn document_of(limit: &Map<String, Value>, spec: &RuleSpec, plan: &str) -> Map<String, Value> {
    let mut document = limit.clone();
    document.remove("name");
    let held_by = spec.matches.attributes.iter().find(|(name, _)| name == PLAN);
    let held_by: Vec<String> =
        held_by.into_iter().flat_map(|(_, matcher)| &matcher.any).map(ToString::to_string).collect();
    if let Some(conditions) = document.entry("match").or_insert_with(|| json!({})).as_object_mut() {
        conditions.insert(PLAN.to_owned(), held_by.into());
    }
    document.insert(PLAN.to_owned(), plan.into());
    document.entry("key_by").or_insert_with(|| KeyBy::client().to_string().into());
    if !spec.replaces.is_empty() {
        document.insert("replaces".to_owned(), spec.replaces.clone().into());
    }
    document
}

/// Warnings about the rules that a plan contains, in the representation of [`PlanRecord::json`]; none for an invalid plan.
pub fn plan_warnings(json: &Value) -> Vec<FieldError> {
    let id = json.get("plan_id").and_then(Value::as_str).unwrap_or_default();
    let Ok(draft) = PlanDraft::from_json(json) else { return Vec::new() };
    let Ok(spec) = document::plan(id, &draft, &document::settings(&widest())) else { return Vec::new() };
    let of_limit = |(number, limit): (usize, &RuleSpec)| -> Vec<FieldError> {
        // A rule of the database counts by client unless it says otherwise.
        let limit = RuleSpec { key_by: limit.key_by.clone().or_else(|| Some(KeyBy::client())), ..limit.clone() };
        let place = |warning: FieldError| match warning.field.as_str() {
            "" => FieldError { field: format!("limits[{number}]"), ..warning },
            field => FieldError { field: format!("limits[{number}].{field}"), ..warning },
        };
        lint_rule(&limit).into_iter().map(FieldError::from).map(place).collect()
    };
    spec.limits.iter().enumerate().flat_map(of_limit).collect()
}
