//! The `cost` of routes: what is read, charged and settled.

mod charging;
mod reading;

use std::sync::Arc;

use tollgate_rules::problem::Problems;
use tollgate_rules::read::{FieldPath, FieldValue};
use tollgate_rules::{Report, yaml};

use crate::CostSpec;

/// Reads a file that has nothing but `cost`.
fn read(text: &str) -> Result<CostSpec, Report> {
    let root = yaml::parse(text).unwrap();
    let mut problems = Problems::default();
    let root = FieldValue { node: &root, path: FieldPath::Root("route") };
    let value = FieldValue { node: root.node.get("cost").unwrap(), path: FieldPath::Field(&root.path, "cost") };
    let spec = CostSpec::read(&value, &mut problems);
    match problems.is_empty() {
        true => Ok(spec),
        false => Err(Report::new("routes.yaml", text, problems)),
    }
}

fn spec(text: &str) -> Arc<CostSpec> {
    Arc::new(read(text).unwrap_or_else(|report| panic!("{report}")))
}
