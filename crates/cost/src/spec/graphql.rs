//! Reads the settings of `graphql`.

use std::path::PathBuf;

use tollgate_rules::problem::Problems;
use tollgate_rules::read::FieldValue;

use crate::amounts::AMOUNT_MAX;
use crate::graphql::GraphqlSpec;

const FIELDS: &[&str] =
    &["depth", "fields", "batch", "list_factor", "list_arguments", "introspection", "persisted_only", "persisted_cost"];

/// Most names of arguments.
const ARGUMENTS_MAX: usize = 32;

pub(super) fn read_graphql(value: FieldValue<'_>, problems: &mut Problems) -> GraphqlSpec {
    let fields = value.fields(FIELDS, "graphql: { depth: 10, fields: 1000 }", problems);
    let mut spec = GraphqlSpec::default();
    let mut number = |name, place: &mut u64, low, high| {
        if let Some(number) = fields.get(name).and_then(|value| value.integer(low..=high, problems)) {
            *place = number;
        }
    };
    number("depth", &mut spec.depth_max, 1, 60);
    number("fields", &mut spec.fields_max, 1, 100_000);
    number("batch", &mut spec.batch_max, 1, 1_000);
    number("list_factor", &mut spec.list_factor, 1, 1_000_000);
    number("introspection", &mut spec.introspection, 0, AMOUNT_MAX);
    number("persisted_cost", &mut spec.persisted_cost, 0, AMOUNT_MAX);
    if let Some(arguments) = fields.get("list_arguments") {
        let names = arguments.one_or_more();
        if names.is_empty() || names.len() > ARGUMENTS_MAX {
            let message = format!("{} has {} names", arguments.path, names.len());
            problems.push(arguments.problem("out-of-range", message).help(format!("write 1 to {ARGUMENTS_MAX}")));
        }
        let names = names.iter().filter_map(|name| name.text(problems));
        spec.list_arguments = names.map(str::to_owned).collect();
    }
    spec.persisted_only = fields.get("persisted_only").and_then(|value| value.text(problems)).map(PathBuf::from);
    spec
}
