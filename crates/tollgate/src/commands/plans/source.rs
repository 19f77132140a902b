//! Where the plans are: in a rules file.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use serde_json::Value;
use tollgate_rules::{document, nearest};
use tollgate_service::plans::PlanDocument;

use crate::document::object;
use crate::input;

/// The flags that say where plans are.
#[derive(Debug, clap::Args)]
pub struct PlanSourceArgs {
    /// The rules file that contains the plans
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,
}

impl PlanSourceArgs {
    /// All plans.
    pub fn all(&self) -> Result<Vec<Value>> {
        of_file(&self.rules)
    }

    /// The plans of these names.
    pub fn named<const N: usize>(&self, names: [&str; N]) -> Result<[Value; N]> {
        let plans = self.all()?;
        let mut found = names.map(|_| Value::Null);
        for (place, name) in found.iter_mut().zip(names) {
            *place = plans.iter().find(|plan| plan_id(plan) == name).cloned().ok_or_else(|| unknown(name, &plans))?;
        }
        Ok(found)
    }
}

fn plan_id(plan: &Value) -> &str {
    plan.get("plan_id").and_then(Value::as_str).unwrap_or_default()
}

fn unknown(name: &str, plans: &[Value]) -> anyhow::Error {
    let help = match nearest(name, plans.iter().map(plan_id)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("plans: {}", plans.iter().map(plan_id).collect::<Vec<_>>().join(", ")),
    };
    anyhow!("there is no plan `{name}`; {help}")
}

fn of_file(path: &Path) -> Result<Vec<Value>> {
    let source = input::read(path)?;
    let (file, root) = tollgate_rules::read_with_tree(&source.name, &source.text)?;
    let trees = file.plans.iter().zip(document::plans_of(&root));
    let plans = trees.map(|(plan, (_, tree))| PlanDocument {
        namespace: file.namespace.clone(),
        plan_id: plan.name.clone(),
        extends: plan.extends.clone(),
        is_default: plan.is_default,
        description: plan.description.clone().unwrap_or_default(),
        limits: document::limits_of(tree).iter().map(|limit| object(&document::explicit(limit, &file))).collect(),
        source: "file",
        location: Some(format!("{}:{}", source.name, plan.at.line)),
    });
    let plans: Vec<PlanDocument> = plans.collect();
    Ok(plans.iter().map(|plan| plan.json(&plans)).collect())
}
