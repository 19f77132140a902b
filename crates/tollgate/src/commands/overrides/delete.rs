//! `tollgate overrides delete ID`

use anyhow::Result;

use crate::admin::{DeleteArgs, ScopeArgs, delete};
use crate::exit::Exit;
use crate::output::Output;

/// The override.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Id of the override
    #[arg(value_name = "OVERRIDE_ID")]
    override_id: String,
    #[command(flatten)]
    delete: DeleteArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"`overrides end` keeps the override in the list; `delete` leaves it in the audit log only.

Examples:
  tollgate overrides delete ov-7f3a

Exit codes:
  0  deleted; with --dry-run: it exists
  1  no such override, or it has another version
  2  wrong usage, no response, no valid token"#;

/// Deletes the override.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    delete(&mut args.scope.admin()?, ("override", &["v1", "overrides", &args.override_id]), &args.delete, out)
}
