//! `tollgate overrides delete ID`

use anyhow::Result;

use crate::admin::{DeleteArgs, ScopeArgs, delete};
use crate::exit::Exit;
use crate::output::Output;

/// Which override.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Its id
    #[arg(value_name = "OVERRIDE_ID")]
    override_id: String,
    #[command(flatten)]
    delete: DeleteArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"`overrides end` ends one and keeps it for the record; this leaves only the audit.

Examples:
  tollgate overrides delete ov-7f3a

Exit codes:
  0  deleted; with --dry-run: it would be
  1  there is no such override, or it is not that version any more
  2  wrong usage, no answer, no valid token"#;

/// Deletes it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    delete(&mut args.scope.admin()?, ("override", &["v1", "overrides", &args.override_id]), &args.delete, out)
}
