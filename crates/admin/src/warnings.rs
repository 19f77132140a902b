//! Warnings in responses: valid rules that probably do not do what was meant.

use serde_json::{Value, json};
use tollgate_control::record::{plan_warnings, rule_warnings};
use tollgate_control::{AppliedChanges, Change, FieldError, RecordKind};
use tollgate_rules::Problem;

/// Most warnings of a response.
const WARNINGS_MAX: usize = 100;

/// Adds the warnings about a stored rule to its JSON. Without warnings the field is absent.
pub(super) fn of_rule(rule: &mut Value) {
    let warnings = of_record(&rule_warnings(rule));
    add(rule, warnings);
}

/// The same for the rules that a plan contains.
pub(super) fn of_plan(plan: &mut Value) {
    let warnings = of_record(&plan_warnings(plan));
    add(plan, warnings);
}

/// Warnings about one record.
pub(super) fn of_record(warnings: &[FieldError]) -> Vec<Value> {
    warnings.iter().take(WARNINGS_MAX).map(shown).collect()
}

/// Warnings about the rules and plans that a change set created or changed, with their ids.
pub(super) fn of_changes(applied: &AppliedChanges) -> Vec<Value> {
    let warnings = |change: &Change| -> Vec<Value> {
        let (id, found): (&str, fn(&Value) -> Vec<FieldError>) = match change.kind {
            RecordKind::Rule => ("rule_id", rule_warnings),
            RecordKind::Plan => ("plan_id", plan_warnings),
            _ => return Vec::new(),
        };
        let found = change.after.as_ref().map(found).unwrap_or_default();
        found.iter().map(|warning| with(shown(warning), json!({ id: change.id }))).collect()
    };
    applied.changes.iter().flat_map(warnings).take(WARNINGS_MAX).collect()
}

/// Warnings about a rules file, with their positions.
pub(super) fn of_file(problems: Vec<Problem>) -> Vec<Value> {
    let warning = |problem: Problem| {
        let position = json!({ "line": problem.line, "column": problem.column });
        with(shown(&FieldError::from(problem)), position)
    };
    problems.into_iter().take(WARNINGS_MAX).map(warning).collect()
}

/// Adds warnings to a response.
pub(super) fn add(body: &mut Value, warnings: Vec<Value>) {
    if let (false, Value::Object(members)) = (warnings.is_empty(), body) {
        members.insert("warnings".to_owned(), warnings.into());
    }
}

fn shown(warning: &FieldError) -> Value {
    let FieldError { field, code, message, help } = warning;
    json!({ "field": field, "code": code, "message": message, "help": help })
}

fn with(mut warning: Value, more: Value) -> Value {
    if let (Value::Object(members), Value::Object(more)) = (&mut warning, more) {
        members.extend(more);
    }
    warning
}
