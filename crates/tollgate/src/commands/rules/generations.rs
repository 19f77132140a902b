//! `tollgate rules generations`

use anyhow::Result;

use crate::admin::{ListArgs, ListTable, ScopeArgs, author};
use crate::exit::Exit;
use crate::output::Output;

/// How many.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Every change makes a generation, the latest first; each decision says by which one
it was made.

Examples:
  tollgate rules generations --limit 10
  What changed since, and the way back:
    tollgate rules diff --from 12
    tollgate rules rollback 12

Exit codes:
  0  listed
  2  wrong usage, no answer, no valid token"#;

/// Prints them.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "generations"]);
    ListTable::new("generations", "nothing has been changed yet")
        .field("GENERATION", "generation")
        .time("WHEN", "at", "-")
        .column("WHO", author)
        .field("WHAT FOR", "action")
        .field("CHANGES", "changes")
        .print_pages(&mut admin, &call, &args.list, out)
}
