//! `tollgate violations top`

use anyhow::Result;

use super::filter::{FilterArgs, refused};
use crate::admin::{ListTable, ScopeArgs};
use crate::exit::Exit;
use crate::output::Output;

/// Grouping and filters.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Group by
    #[arg(long, value_name = "WHAT", default_value = "client", value_parser = ["client", "rule", "endpoint"])]
    by: String,
    #[command(flatten)]
    filter: FilterArgs,
    /// Print at most N entries
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    limit: u64,
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Examples:
  tollgate violations top --from 1d
  The rules that deny most:
    tollgate violations top --by rule --limit 3

Exit codes:
  0  listed, even if there are none
  2  wrong usage, no response, no valid token"#;

/// Prints the groups with the most denied requests first.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "violations", "top"]).query("by", &args.by).query("limit", &args.limit.to_string());
    ListTable::new("offenders", "none")
        .field(&args.by.to_uppercase(), "what")
        .column("REFUSED", refused)
        .time("LAST", "last_violated_at", "-")
        .print_whole(&mut admin, &args.filter.restrict(call), args.json, out)
}
