//! `tollgate clients list`

use anyhow::Result;

use crate::admin::{ListArgs, ListTable, ScopeArgs};
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::member;

/// Filters.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Only clients of this tier
    #[arg(long, value_name = "TIER")]
    tier: Option<String>,
    /// Only clients of this organisation
    #[arg(long, value_name = "ORG")]
    org: Option<String>,
    /// Only clients whose key starts with this text
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Examples:
  tollgate clients list --tier paid
  tollgate clients list --prefix key:acme- --all --json

Exit codes:
  0  listed, even if there are none
  2  wrong usage, no response, no valid token"#;

/// Prints the clients.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "clients"]).query_each([
        ("tier", args.tier.as_deref()),
        ("organisation", args.org.as_deref()),
        ("prefix", args.prefix.as_deref()),
    ]);
    ListTable::new("clients", "no such clients")
        .field("CLIENT", "client_key")
        .field("TIER", "tier")
        .field("PLAN", "plan")
        .field("ORGANISATION", "organisation")
        .column("ATTRIBUTES", |entry| member(entry, "attributes").trim_matches(['{', '}', ' ']).to_owned())
        .time("UPDATED", "updated_at", "-")
        .print_pages(&mut admin, &call, &args.list, out)
}
