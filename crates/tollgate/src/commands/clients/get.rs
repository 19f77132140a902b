//! `tollgate clients get KEY`

use anyhow::Result;

use crate::admin::{ScopeReadArgs, details, print_record};
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
    read: ScopeReadArgs,
}

const HELP: &str = r#"Examples:
  tollgate clients get key:acme-prod
  tollgate clients get user:42 --json | jq -r .tier

Exit codes:
  0  printed
  1  no such client
  2  wrong usage, no response, no valid token"#;

/// Prints the client.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let segments = ["v1", "clients", &args.client_key];
    print_record(&mut args.read.scope.admin()?, &segments, args.read.json, out, |client, out| {
        details(&client, &["client_key", "tier", "plan", "organisation", "attributes"], out)
    })
}
