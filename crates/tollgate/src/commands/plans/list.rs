//! `tollgate plans list`

use anyhow::Result;
use serde_json::{Value, json};
use tollgate_service::plans::rules;

use super::source::PlanSourceArgs;
use crate::admin::ListTable;
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::{count, member, source_words};

/// Where the plans are.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: PlanSourceArgs,
}

const HELP: &str = r#"RULES counts the rules that a plan has, inherited ones included.

Examples:
  tollgate plans list
  tollgate plans list --rules examples/plans.yaml

Exit codes:
  0  listed, even if there are none
  2  wrong usage, an unreadable or invalid file, no response"#;

/// Prints the plans.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let plans = args.source.all()?;
    if args.json {
        out.json(&json!({ "plans": plans }))?;
        return Ok(Exit::Ok);
    }
    ListTable::new("plans", "no plans")
        .field("PLAN", "plan_id")
        .field("EXTENDS", "extends")
        .column("RULES", |plan| rules(plan).len().to_string())
        .column("", |plan| if plan.get("default") == Some(&Value::Bool(true)) { "default" } else { "" }.to_owned())
        .field("DESCRIPTION", "description")
        .column("SOURCE", source_words)
        .print_entries(&plans, out)
}

/// `plan pro, extends free, 3 rules: for teams (file plans.yaml:9)`
pub fn heading(plan: &Value) -> String {
    let extends = plan.get("extends").and_then(Value::as_str).map(|name| format!(", extends {name}"));
    let default = if plan.get("default") == Some(&Value::Bool(true)) { ", default" } else { "" };
    let (name, extends) = (member(plan, "plan_id"), extends.unwrap_or_default());
    let about = plan.get("description").and_then(Value::as_str).filter(|text| !text.is_empty());
    let about = about.map(|about| format!(": {about}")).unwrap_or_default();
    format!("plan {name}{extends}{default}, {}{about} ({})", count(rules(plan).len(), "rule"), source_words(plan))
}
