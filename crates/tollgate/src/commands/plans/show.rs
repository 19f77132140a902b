//! `tollgate plans show PLAN`

use anyhow::Result;
use tollgate_service::plans::rules;

use super::list::heading;
use super::source::PlanSourceArgs;
use crate::admin::ListTable;
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::{key_words, limit_words, match_words, visible};

/// The plan.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Name of the plan
    #[arg(value_name = "PLAN")]
    plan: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: PlanSourceArgs,
}

const HELP: &str = r#"Lists the rules that apply to clients with this plan: those that the plan contains, and
those of the plans that it extends. FROM is the plan that contains the rule; RULE is the
name within plans, which an override of any plan can use, and FROM.RULE is the rule's
name in decisions.

Examples:
  tollgate plans show pro
  tollgate plans show pro --rules examples/plans.yaml

Exit codes:
  0  printed
  2  no such plan, wrong usage, an unreadable or invalid file, no response"#;

/// Prints the plan.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let [plan] = args.source.named([&args.plan])?;
    if args.json {
        out.json(&plan)?;
        return Ok(Exit::Ok);
    }
    out.line(&visible(&heading(&plan)))?;
    ListTable::new("rules", "no rules: nothing limits clients of this plan")
        .field("RULE", "name")
        .column("LIMIT", limit_words)
        .column("KEY BY", key_words)
        .column("APPLIES TO", match_words)
        .field("FROM", "plan")
        .print_entries(rules(&plan), out)
}
