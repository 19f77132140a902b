//! Validates drafts with the reader of rules files.
//!
//! Requests are JSON and rows are columns; both are converted to the tree of a rules file, so that one reader validates
//! all. This file builds the trees and translates errors into the field names of the API: `rule_id` for `rule` of a
//! file, `max_requests` for `requests`.

use serde_json::{Map, Value};
use tollgate_rules::check::{self, is_label};
use tollgate_rules::document::{self, NamespaceSettings};
use tollgate_rules::path::EscapedSlash;
use tollgate_rules::problem::{Problem, quote};
use tollgate_rules::yaml::{DEPTH_MAX, SCALAR_BYTES_MAX, YamlNode};
use tollgate_rules::{ClientSpec, GrantSpec, OverrideSpec, PlanSpec, RuleSpec, plan as plans};

use super::{ClientDraft, GrantDraft, NamespaceDraft, OverrideDraft, PlanDraft, PlanRecord};
use crate::FieldError;
use crate::error::field_error;

/// Longest document of one rule, as JSON.
const RULE_BYTES_MAX: usize = 1 << 20;
/// Longest value of a client's fields: no pattern matches a longer one.
const VALUE_BYTES_MAX: usize = 1024;
/// Most attributes of a client.
const ATTRIBUTES_MAX: usize = 64;
/// Longest reason of an override or a grant.
pub(crate) const REASON_BYTES_MAX: usize = 4096;

/// The settings of a namespace that rules depend on.
pub(crate) fn settings(namespace: &NamespaceDraft) -> NamespaceSettings {
    NamespaceSettings {
        escaped_slash: if namespace.keep_escaped_slash { EscapedSlash::Keep } else { EscapedSlash::Reject },
        allow_block_all: namespace.allow_block_all,
        ..NamespaceSettings::default()
    }
}

/// Reads the document of a rule with this id.
pub(crate) fn rule(
    rule_id: &str,
    document: &Map<String, Value>,
    settings: &NamespaceSettings,
) -> Result<RuleSpec, Vec<FieldError>> {
    let mut faults = Vec::new();
    // Wider than the form of new names: rows from before that restriction are read here too.
    faults.extend(bad_id("rule_id", rule_id).and_then(|_| bad_rule_name("rule_id", rule_id)));
    if document.contains_key("name") {
        faults.push(field_error(
            "name",
            "unknown-field",
            "the document of a rule has no name",
            "set `name` beside the document",
        ));
    }
    if document.values().map(bytes).sum::<usize>() > RULE_BYTES_MAX {
        faults.push(too_large("", "the rule", RULE_BYTES_MAX));
    }
    document.iter().for_each(|(name, value)| plain_text(name, value, 1, &mut faults));
    if !faults.is_empty() {
        return Err(faults);
    }
    let entries = document.iter().map(|(name, value)| (name.clone(), node(value)));
    // Not read as a name: rows from before `ChangePlan::validate_names` keep their names and stay in force.
    match document::rule(&YamlNode::map(entries), settings) {
        Ok(spec) => Ok(RuleSpec { name: Some(rule_id.to_owned()), ..spec }),
        Err(problems) => Err(problems.into_iter().map(FieldError::from).collect()),
    }
}

/// Validates a client.
pub(crate) fn client(client_key: &str, draft: &ClientDraft) -> Result<ClientSpec, Vec<FieldError>> {
    let mut faults = Vec::new();
    if draft.attributes.len() > ATTRIBUTES_MAX {
        let help = format!("give at most {ATTRIBUTES_MAX}");
        faults.push(field_error("attributes", "too-large", "the client has too many attributes", &help));
    }
    let texts = [("tier", &draft.tier), ("organisation", &draft.organisation)];
    let texts = texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text.as_ref()?)));
    let attributes = draft.attributes.iter().map(|(name, text)| (format!("attributes.{name}"), text));
    for (field, text) in texts.chain(attributes) {
        short_text(&field, text, VALUE_BYTES_MAX, &mut faults);
    }
    draft.plan.iter().for_each(|plan| plain_text("plan", plan, 1, &mut faults));
    faults.extend(draft.plan.as_ref().filter(|plan| !are_steps(plan)).map(|_| {
        let help = "write a name, or a list of names and of {\"plan\": \"pro\", \"from\": \"2026-12-01\"}";
        field_error("plan", "wrong-type", "plan should be text, or a list of steps", help)
    }));
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut entries = vec![("client_key", YamlNode::text(client_key))];
    entries.extend(draft.plan.as_ref().map(|plan| ("plan", node(plan))));
    entries.extend(draft.tier.as_ref().map(|tier| ("tier", YamlNode::text(tier))));
    entries.extend(draft.organisation.as_ref().map(|organisation| ("org", YamlNode::text(organisation))));
    if !draft.attributes.is_empty() {
        let attributes = draft.attributes.iter().map(|(name, text)| (name.clone(), YamlNode::text(text)));
        entries.push(("attributes", YamlNode::map(attributes)));
    }
    document::client(&YamlNode::map(entries)).map_err(|problems| renamed(problems, &[("org", "organisation")]))
}

/// True if names and dates in the plan of a client are text: a tree would read `false` as a name.
fn are_steps(plan: &Value) -> bool {
    let is_step = |step: &Value| match step {
        Value::Object(fields) => fields.values().all(Value::is_string),
        step => step.is_string(),
    };
    match plan {
        Value::Array(steps) => steps.iter().all(is_step),
        step => is_step(step),
    }
}

/// Reads the draft of a plan with this name.
pub(crate) fn plan(
    plan_id: &str,
    draft: &PlanDraft,
    settings: &NamespaceSettings,
) -> Result<PlanSpec, Vec<FieldError>> {
    let mut faults = Vec::new();
    if !plans::is_plan_name(plan_id) {
        let message = format!("{} cannot be the name of a plan", quote(plan_id));
        faults.push(field_error("plan_id", "bad-name", &message, plans::PLAN_NAME_HELP));
    }
    if draft.limits.iter().map(bytes).sum::<usize>() > RULE_BYTES_MAX {
        faults.push(too_large("limits", "limits", RULE_BYTES_MAX));
    }
    short_text("description", &draft.description, REASON_BYTES_MAX, &mut faults);
    draft.extends.iter().for_each(|name| short_text("extends", name, VALUE_BYTES_MAX, &mut faults));
    draft.limits.iter().for_each(|limit| plain_text("limits", limit, 1, &mut faults));
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut entries = vec![("limits", YamlNode::list(draft.limits.iter().map(node)))];
    entries.extend(draft.extends.as_ref().map(|name| ("extends", YamlNode::text(name))));
    entries.extend(draft.is_default.then(|| ("default", YamlNode::plain(true))));
    entries.extend((!draft.description.is_empty()).then(|| ("description", YamlNode::text(&draft.description))));
    let read = document::plan(plan_id, &YamlNode::map(entries), settings);
    read.map_err(|problems| problems.into_iter().map(FieldError::from).collect())
}

impl PlanRecord {
    /// The specification of the plan under the settings of its namespace, or all errors.
    pub fn spec(&self, namespace: &NamespaceDraft) -> Result<PlanSpec, Vec<FieldError>> {
        plan(&self.plan_id, &self.draft, &settings(namespace))
    }
}

/// Validates an override by itself.
pub(crate) fn overriding(draft: &OverrideDraft) -> Result<OverrideSpec, Vec<FieldError>> {
    let mut faults = Vec::new();
    short_text("reason", &draft.reason, REASON_BYTES_MAX, &mut faults);
    faults.extend(bad_id("rule_id", &draft.rule_id));
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut entries = vec![("client_key", YamlNode::text(&draft.client_key)), ("rule", YamlNode::text(&draft.rule_id))];
    entries.extend(draft.max_requests.map(|requests| ("requests", YamlNode::plain(requests))));
    entries.extend((draft.burst_size != 0).then(|| ("burst", YamlNode::plain(draft.burst_size))));
    entries.extend(draft.unlimited.then(|| ("unlimited", YamlNode::plain(true))));
    entries.extend(draft.valid_from.map(|instant| ("valid_from", YamlNode::text(instant.to_string()))));
    entries.push(("valid_until", YamlNode::text(draft.valid_until.to_string())));
    entries.extend((!draft.reason.is_empty()).then(|| ("reason", YamlNode::text(&draft.reason))));
    document::override_of(&YamlNode::map(entries)).map_err(of_override)
}

/// Errors of an override, with the names of its columns.
pub(crate) fn of_override(problems: Vec<Problem>) -> Vec<FieldError> {
    renamed(problems, &[("rule", "rule_id"), ("requests", "max_requests"), ("burst", "burst_size")])
}

/// Validates a grant by itself.
pub(crate) fn grant(draft: &GrantDraft) -> Result<GrantSpec, Vec<FieldError>> {
    let mut faults = Vec::new();
    short_text("reason", &draft.reason, REASON_BYTES_MAX, &mut faults);
    faults.extend(bad_id("rule_id", &draft.rule_id));
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut entries = vec![("client_key", YamlNode::text(&draft.client_key)), ("rule", YamlNode::text(&draft.rule_id))];
    entries.push(("amount", YamlNode::plain(draft.amount)));
    entries.extend(draft.valid_from.map(|instant| ("valid_from", YamlNode::text(instant.to_string()))));
    entries.extend(draft.valid_until.map(|instant| ("valid_until", YamlNode::text(instant.to_string()))));
    entries.extend((!draft.reason.is_empty()).then(|| ("reason", YamlNode::text(&draft.reason))));
    document::grant_of(&YamlNode::map(entries)).map_err(of_grant)
}

/// Errors of a grant, with the names of its columns.
pub(crate) fn of_grant(problems: Vec<Problem>) -> Vec<FieldError> {
    renamed(problems, &[("rule", "rule_id")])
}

/// Validates the settings of a namespace.
pub(crate) fn namespace(draft: &NamespaceDraft) -> Option<FieldError> {
    let bits = check::IPV6_PREFIX;
    let help = format!("allowed: {} to {}", bits.start(), bits.end());
    let message = format!("ipv6_prefix is {}", draft.ipv6_prefix);
    (!bits.contains(&u64::from(draft.ipv6_prefix))).then(|| field_error("ipv6_prefix", "out-of-range", &message, &help))
}

/// Validates a new id or name of a rule.
pub(crate) fn bad_rule_name(field: &str, name: &str) -> Option<FieldError> {
    let message = format!("{} cannot be a {field}", quote(name));
    (!check::is_rule_name(name)).then(|| field_error(field, "bad-name", &message, &check::rule_name_help(name)))
}

/// Validates a name that people or callers see.
pub(crate) fn bad_id(field: &str, id: &str) -> Option<FieldError> {
    let message = format!("{} cannot be a {field}", quote(id));
    (!is_label(id)).then(|| field_error(field, "bad-name", &message, check::LABEL_HELP))
}

/// Validates text of a column: its length, and no NUL, which PostgreSQL cannot store.
pub(crate) fn short_text(field: &str, text: &str, most: usize, faults: &mut Vec<FieldError>) {
    if text.len() > most {
        faults.push(too_large(field, field, most));
    }
    if text.contains('\0') {
        faults.push(field_error(field, "bad-text", &format!("{field} has a NUL byte"), "remove it"));
    }
}

fn too_large(field: &str, what: &str, most: usize) -> FieldError {
    field_error(field, "too-large", &format!("{what} is too long"), &format!("use at most {most} bytes"))
}

fn renamed(problems: Vec<Problem>, names: &[(&str, &str)]) -> Vec<FieldError> {
    let faults = problems.into_iter().map(FieldError::from).map(|mut fault| {
        if let Some((file, column)) = names.iter().find(|(file, _)| *file == fault.field) {
            fault.message = fault.message.replacen(file, column, 1);
            fault.field = (*column).to_owned();
        }
        fault
    });
    faults.collect()
}

/// JSON as a tree. Keys are sorted: the meaning of a rule must not depend on how a database stores JSON.
fn node(value: &Value) -> YamlNode {
    match value {
        Value::Null => YamlNode::blank(),
        Value::Bool(flag) => YamlNode::plain(flag),
        Value::Number(number) => YamlNode::plain(number),
        Value::String(text) => YamlNode::text(text),
        Value::Array(items) => YamlNode::list(items.iter().map(node)),
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_unstable_by_key(|(name, _)| *name);
            YamlNode::map(entries.into_iter().map(|(name, value)| (name.as_str(), node(value))))
        }
    }
}

/// Refuses what the parser of rules files would refuse: excessive depth or length, NUL.
fn plain_text(path: &str, value: &Value, depth: usize, faults: &mut Vec<FieldError>) {
    match value {
        _ if depth > DEPTH_MAX => {
            faults.push(field_error(path, "too-deep", "the document is nested too deeply", "flatten it"))
        }
        Value::String(text) => short_text(path, text, SCALAR_BYTES_MAX, faults),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                plain_text(&format!("{path}[{index}]"), item, depth + 1, faults);
            }
        }
        Value::Object(map) => {
            for (name, item) in map {
                short_text(path, name, SCALAR_BYTES_MAX, faults);
                plain_text(&format!("{path}.{name}"), item, depth + 1, faults);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Approximate size of a value; at least 1.
fn bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes).sum::<usize>() + items.len(),
        Value::Object(map) => map.iter().map(|(name, value)| name.len() + bytes(value)).sum::<usize>() + map.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}
