//! `tollgate grants delete ID`

use anyhow::Result;

use crate::admin::{DeleteArgs, ScopeArgs, delete};
use crate::exit::Exit;
use crate::output::Output;

/// The grant.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Id of the grant
    #[arg(value_name = "GRANT_ID")]
    grant_id: String,
    #[command(flatten)]
    delete: DeleteArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"What was used of the grant stays used; the rest is gone at once.

Examples:
  tollgate grants delete grt-7f3a

Exit codes:
  0  deleted; with --dry-run: it exists
  1  no such grant, or it has another version
  2  wrong usage, no response, no valid token"#;

/// Deletes the grant.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    delete(&mut args.scope.admin()?, ("grant", &["v1", "grants", &args.grant_id]), &args.delete, out)
}
