//! Where the plans are: in a rules file, or on a server.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use serde_json::Value;
use tollgate_rules::nearest;
use tollgate_service::plans::PlanDocument;

use crate::admin::ScopeArgs;
use crate::document::object;
use crate::input;

/// The flags that say where plans are.
#[derive(Debug, clap::Args)]
pub struct PlanSourceArgs {
    /// Read the plans of this rules file instead of a server
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    #[command(flatten)]
    scope: ScopeArgs,
}

impl PlanSourceArgs {
    /// All plans.
    pub fn all(&self) -> Result<Vec<Value>> {
        if let Some(file) = &self.rules {
            return of_file(file);
        }
        let mut admin = self.scope.admin()?;
        let call = admin.get(&["v1", "plans"]);
        let mut body = admin.send(&call)?.json()?;
        Ok(body.get_mut("plans").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default())
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
    let meant = nearest(name, plans.iter().map(plan_id)).map(|meant| format!(", did you mean `{meant}`?"));
    anyhow!("there is no plan `{name}`{}", meant.unwrap_or_default())
}

fn of_file(path: &Path) -> Result<Vec<Value>> {
    let source = input::read(path)?;
    let (file, root) = tollgate_rules::read_with_tree(&source.name, &source.text)?;
    let plans = PlanDocument::of_file(&file, &root, &source.name, object);
    Ok(plans.iter().map(|plan| plan.json(&plans)).collect())
}
