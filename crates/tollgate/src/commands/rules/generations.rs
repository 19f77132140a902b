//! `tollgate rules generations`

use anyhow::Result;

use crate::admin::{ListArgs, ListTable, ScopeArgs, author};
use crate::exit::Exit;
use crate::output::Output;

/// Output flags.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Every change creates a generation, listed latest first; each decision names its
generation.

Examples:
  tollgate rules generations --limit 10
  Changes since a generation, and the rollback to it:
    tollgate rules diff --from 12
    tollgate rules rollback 12

Exit codes:
  0  listed
  2  wrong usage, no response, no valid token"#;

/// Prints the generations.
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
