//! `tollgate clients get KEY`

use anyhow::Result;

use crate::admin::{ScopeArgs, details};
use crate::exit::Exit;
use crate::output::Output;

/// Which client.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Its key: user:42, key:acme-prod
    #[arg(value_name = "CLIENT_KEY")]
    client_key: String,
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: ScopeArgs,
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
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "clients", &args.client_key]);
    let response = admin.send(&call)?;
    match args.json {
        true => out.line(&response.text())?,
        false => details(&response.json()?, &["client_key", "tier", "organisation", "attributes"], out)?,
    }
    Ok(Exit::Ok)
}
