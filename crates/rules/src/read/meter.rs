//! Reads `meter`: one name, or names with weights.

use tollgate_core::Request;

use super::field::{FieldPath, FieldValue};
use crate::check;
use crate::key::is_attribute;
use crate::problem::{Problem, Problems, quote};
use crate::spec::MeterSpec;
use crate::yaml::YamlKind;

const EXAMPLE: &str = "write `meter: output_tokens`, or weights: `meter: { input_tokens: 1, output_tokens: 4 }`";

/// Reads the value of `meter`; requests are counted after a problem.
pub(super) fn read_meter(value: &FieldValue<'_>, problems: &mut Problems) -> MeterSpec {
    let YamlKind::Map(entries) = &value.node.kind else {
        let Some(name) = value.text(problems) else { return MeterSpec::default() };
        if let Some(problem) = bad_name(value, name) {
            problems.push(problem);
        }
        return match name {
            Request::REQUESTS => MeterSpec::Requests,
            _ => MeterSpec::Weighted(vec![(name.to_owned(), 1)]),
        };
    };
    if entries.is_empty() || entries.len() > check::METERS_MAX {
        let message = format!("{} has {} meters", value.path, entries.len());
        problems.push(value.problem("bad-meter", message).help(format!("name 1 to {}", check::METERS_MAX)));
    }
    let mut weights = Vec::with_capacity(entries.len());
    for (key, node) in entries {
        let entry = FieldValue { node, path: FieldPath::Field(&value.path, &key.text) };
        if let Some(problem) = bad_name(&entry, &key.text) {
            problems.push(problem);
        }
        let weight = entry.integer(1..=check::WEIGHT_MAX, problems).unwrap_or(1);
        weights.push((key.text.clone(), weight));
    }
    match weights.as_slice() {
        [(name, 1)] if name == Request::REQUESTS => MeterSpec::Requests,
        _ => MeterSpec::Weighted(weights),
    }
}

fn bad_name(value: &FieldValue<'_>, name: &str) -> Option<Problem> {
    let message = format!("{} cannot be the name of a meter", quote(name));
    let help = format!("a lower-case letter, then up to 63 of a-z, 0-9, `_`, `.` and `-`; {EXAMPLE}");
    (!is_attribute(name)).then(|| value.problem("bad-meter", message).help(help))
}
