//! `tollgate overrides delete ID`

use anyhow::Result;

use crate::admin::{DeleteArgs, ScopeArgs, delete};
use crate::exit::Exit;
use crate::output::Output;

/// Which override.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its id
    #[arg(value_name = "OVERRIDE_ID")]
    override_id: String,
    #[command(flatten)]
    delete: DeleteArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

/// Deletes it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    delete(&mut args.scope.admin()?, ("override", &["v1", "overrides", &args.override_id]), &args.delete, out)
}
