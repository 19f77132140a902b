//! `tollgate clients delete KEY`

use anyhow::Result;

use crate::admin::{DeleteArgs, ScopeArgs, delete};
use crate::exit::Exit;
use crate::output::Output;

/// The client.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Client key: user:42, key:acme-prod
    #[arg(value_name = "CLIENT_KEY")]
    client_key: String,
    #[command(flatten)]
    delete: DeleteArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Examples:
  tollgate clients delete key:acme-prod

Exit codes:
  0  deleted; with --dry-run: it exists
  1  no such client, or it has another version
  2  wrong usage, no response, no valid token"#;

/// Deletes the client.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    delete(&mut args.scope.admin()?, ("client", &["v1", "clients", &args.client_key]), &args.delete, out)
}
