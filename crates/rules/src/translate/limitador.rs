//! Translates limits of limitador: counters with conditions and variables.
//!
//! Conditions are expressions. Those that compare one attribute with one text are translated; others get a note.

use std::collections::BTreeSet;

use super::{TranslationDraft, fixed_window, is_attribute, key_by, peculiar, reserved};
use crate::check::{REQUESTS_MAX, nearest_rule_name};
use crate::problem::Problems;
use crate::read::{FieldPath, FieldValue};
use crate::report::Report;
use crate::yaml::{self, YamlKind, YamlNode};

const FIELDS: &[&str] = &["namespace", "max_value", "seconds", "conditions", "variables", "name", "id", "policy"];
const EXAMPLE: &str = "{ namespace: api, max_value: 10, seconds: 60 }";

pub(super) fn translate(file_name: &str, text: &str, draft: &mut TranslationDraft) -> Result<(), Report> {
    let mut problems = Problems::default();
    match yaml::parse(text) {
        Ok(root) => {
            let list = FieldValue { node: &root, path: FieldPath::Root("file") };
            // Files of the limitador operator have the list under `limits`.
            let under =
                root.get("limits").map(|node| FieldValue { node, path: FieldPath::Field(&list.path, "limits") });
            let limits = under.unwrap_or(list);
            for limit in limits.items("limits", &mut problems).collect::<Vec<_>>() {
                one(limit, draft, &mut problems);
            }
        }
        Err(found) => problems.extend(found),
    }
    if problems.is_empty() { Ok(()) } else { Err(Report::new(file_name, text, problems)) }
}

fn one(limit: FieldValue<'_>, draft: &mut TranslationDraft, problems: &mut Problems) {
    let fields = limit.fields(FIELDS, EXAMPLE, problems);
    let help = format!("write for example `{EXAMPLE}`");
    let namespace = fields.required("namespace", &help, problems).and_then(|value| value.text(problems));
    let most = fields.required("max_value", &help, problems);
    let most = most.and_then(|value| value.integer(0..=REQUESTS_MAX, problems));
    let seconds = fields.required("seconds", &help, problems).and_then(|value| value.integer(1..=31_622_400, problems));
    let name = fields.get("name").and_then(|value| value.text(problems)).map(nearest_rule_name);
    let (Some(namespace), Some(most), Some(seconds)) = (namespace, most, seconds) else { return };
    let at = limit.position();
    let conditions = texts(fields.get("conditions"));
    let conditions = conditions.iter().map(|text| condition(text)).collect::<Result<Vec<(String, String)>, String>>();
    let variables = texts(fields.get("variables"));
    let variables = variables.iter().map(|text| attribute(text).ok_or(text)).collect::<Result<Vec<String>, _>>();
    let (conditions, keys) = match (conditions, variables) {
        (Err(text), _) => {
            return draft.leave_out(namespace, at, format!("`{text}` does not compare an attribute with a text"));
        }
        (_, Err(text)) => return draft.leave_out(namespace, at, format!("the variable `{text}` is no attribute")),
        (Ok(conditions), Ok(keys)) => (conditions, keys),
    };
    let names: BTreeSet<&str> = conditions.iter().map(|(name, _)| name).chain(&keys).map(String::as_str).collect();
    if let Some(why) = names.iter().find_map(|name| reserved(name)) {
        return draft.leave_out(namespace, at, why);
    }
    let mut remarks: Vec<String> = names.iter().filter_map(|name| peculiar(name)).map(str::to_owned).collect();
    match fields.get("policy").map(|policy| policy.node.kind.clone()) {
        None => {}
        Some(YamlKind::Scalar { text, .. }) if text == "fixed_window" => {}
        Some(_) => remarks.push("`policy` is left out: it is counted in fixed windows".to_owned()),
    }
    let mut matches: Vec<(String, Vec<YamlNode>)> = Vec::new();
    for (name, pattern) in conditions {
        match matches.iter_mut().find(|(other, _)| *other == name) {
            Some((_, patterns)) => patterns.push(YamlNode::text(pattern)),
            None => matches.push((name, vec![YamlNode::text(pattern)])),
        }
    }
    if let Some((name, _)) = matches.iter().find(|(_, patterns)| patterns.iter().filter(|p| !is_not(p)).count() > 1) {
        return draft.leave_out(namespace, at, format!("`{name}` would have to equal two texts at once"));
    }
    let matches = matches.into_iter().map(|(name, patterns)| (name, YamlNode::list(patterns)));
    let limit = fixed_window(most, &format!("{seconds}s"));
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let fields = vec![("match", YamlNode::map(matches)), ("key_by", key_by(&keys)), ("limit", limit)];
    if draft.add(namespace, at, name.as_deref().unwrap_or("limit"), fields) {
        remarks.into_iter().for_each(|remark| draft.note(at, remark));
    }
}

fn is_not(pattern: &YamlNode) -> bool {
    matches!(&pattern.kind, YamlKind::Scalar { text, .. } if text.starts_with('!'))
}

fn texts(value: Option<FieldValue<'_>>) -> Vec<String> {
    let items = value.as_ref().map(FieldValue::one_or_more).unwrap_or_default();
    let text = |item: &FieldValue<'_>| match &item.node.kind {
        YamlKind::Scalar { text, .. } => text.clone(),
        _ => String::new(),
    };
    items.iter().map(text).collect()
}

/// Attribute and pattern of `attribute == 'text'` or `!=`; otherwise the expression as an error.
fn condition(text: &str) -> Result<(String, String), String> {
    let split = text.split_once("==").map(|sides| (sides, "")).or_else(|| text.split_once("!=").map(|s| (s, "!")));
    let parsed = split.and_then(|((left, right), not)| {
        let value = unquoted(right.trim())?;
        let special = value.contains('*') || value.starts_with('!') || value.is_empty();
        (!special).then_some((attribute(left.trim())?, format!("{not}{value}")))
    });
    parsed.ok_or_else(|| text.to_owned())
}

/// A text in single or double quotes, or a bare word, as in older files.
fn unquoted(text: &str) -> Option<&str> {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote).filter(|inside| !inside.contains(quote));
    inside('\'').or_else(|| inside('"')).or_else(|| Some(text).filter(|text| is_attribute(text)))
}

/// `user_id`, `descriptors[0].user_id` or `descriptors[0]['user_id']`.
fn attribute(text: &str) -> Option<String> {
    let inner = match text.strip_prefix("descriptors[0]") {
        None => text,
        Some(rest) => match rest.strip_prefix('.') {
            Some(name) => name,
            None => unquoted(rest.strip_prefix('[')?.strip_suffix(']')?.trim())?,
        },
    };
    is_attribute(inner).then(|| inner.to_owned())
}
