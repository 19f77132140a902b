//! `tollgate plans diff A B`

use anyhow::Result;
use serde_json::json;
use tollgate_service::plans::differences;

use super::source::PlanSourceArgs;
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::changes_text;

/// The plans to compare.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The plan to start from
    #[arg(value_name = "FROM")]
    from: String,
    /// The plan to compare with it
    #[arg(value_name = "TO")]
    to: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: PlanSourceArgs,
}

const HELP: &str = r#"What changes for a client that goes from one plan to another: `+` is a rule that only the
second plan has, `-` one that only the first has, `~` one that differs. Usage of a rule
that both have is kept, unless its algorithm, window or meter differs.

Examples:
  tollgate plans diff free pro
  tollgate plans diff free pro --rules examples/plans.yaml

Exit codes, as of diff(1):
  0  no difference
  1  there are differences
  2  no such plan, wrong usage, an unreadable or invalid file, no response"#;

/// Prints the differences.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let [from, to] = args.source.named([&args.from, &args.to])?;
    let changes = differences(&from, &to);
    match (args.json, changes.is_empty()) {
        (true, _) => out.json(&json!({ "changes": changes }))?,
        (false, true) => out.line("no difference")?,
        (false, false) => out.text(&changes_text(&changes, out.palette()))?,
    }
    Ok(Exit::from_success(changes.is_empty()))
}
