//! Conditions on header fields, of routes and of classes: a field and its value, or `*` for any.

use http::{HeaderMap, HeaderName};
use tollgate_rules::problem::Problems;
use tollgate_rules::read::{FieldPath, FieldValue};
use tollgate_rules::yaml::YamlKind;

use super::header_edits::field_name;

/// Whether a header has all of these fields, with these values.
pub(crate) fn have_all(headers: &HeaderMap, conditions: &[(HeaderName, String)]) -> bool {
    conditions.iter().all(|(name, wanted)| {
        headers.get_all(name).iter().any(|value| wanted == "*" || value.as_bytes() == wanted.as_bytes())
    })
}

/// Reads conditions on header fields.
pub(super) fn read_conditions(value: &FieldValue<'_>, problems: &mut Problems) -> Vec<(HeaderName, String)> {
    let YamlKind::Map(entries) = &value.node.kind else {
        problems.push(value.mismatch("a map of header fields", "write `{ x-version: 2 }`, or `*` for any value"));
        return Vec::new();
    };
    let mut all = Vec::new();
    for (key, node) in entries {
        let value = FieldValue { node, path: FieldPath::Field(&value.path, &key.text) };
        let Some(text) = value.text(problems) else { continue };
        match field_name(&key.text) {
            Ok(name) => all.push((name, text.to_owned())),
            Err(error) => problems.push(value.fault("bad-header", error)),
        }
    }
    all
}
