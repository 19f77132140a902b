//! `tollgate clients get KEY`

use anyhow::Result;

use crate::admin::{ScopeReadArgs, details, print_record};
use crate::exit::Exit;
use crate::output::Output;

/// Which client.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Its key: user:42, key:acme-prod
    #[arg(value_name = "CLIENT_KEY")]
    client_key: String,
    #[command(flatten)]
    read: ScopeReadArgs,
}

const HELP: &str = r#"Examples:
  tollgate clients get key:acme-prod
  tollgate clients get user:42 --json | jq -r .tier

Exit codes:
  0  here it is
  1  nothing is known of it
  2  wrong usage, no answer, no valid token"#;

/// Prints it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let segments = ["v1", "clients", &args.client_key];
    print_record(&mut args.read.scope.admin()?, &segments, args.read.json, out, |client, out| {
        details(&client, &["client_key", "tier", "organisation", "attributes"], out)
    })
}
