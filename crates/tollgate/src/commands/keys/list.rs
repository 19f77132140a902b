//! `tollgate keys list`

use anyhow::Result;

use crate::admin::{EveryScopeArgs, ListArgs, ListTable};
use crate::exit::Exit;
use crate::output::Output;

/// Filters.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Only keys of this client
    #[arg(long, value_name = "KEY")]
    client: Option<String>,
    /// Revoked keys too
    #[arg(long)]
    revoked: bool,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    scope: EveryScopeArgs,
}

const HELP: &str = r#"Lists the keys in the database, of all namespaces unless --namespace names one. Keys in
files of gateways are not listed.

Examples:
  tollgate keys list --client user:42
  Keys that never expire:
    tollgate keys list --all --json | jq -r '.keys[] | select(.expires_at == null).key_id'

Exit codes:
  0  listed, even if there are none
  2  wrong usage, no response, no valid token"#;

/// Prints the keys.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin
        .get(&["v1", "keys"])
        .query_each([("client_key", args.client.as_deref()), ("revoked", args.revoked.then_some("true"))]);
    ListTable::new("keys", "no such keys")
        .namespace_if(!args.scope.is_one())
        .field("KEY", "key_id")
        .field("CLIENT", "client_key")
        .field("NAME", "name")
        .time("EXPIRES", "expires_at", "never")
        .time("ROTATED", "rotated_at", "-")
        .time("REVOKED", "revoked_at", "-")
        .print_pages(&mut admin, &call, &args.list, out)
}
