//! `tollgate clients list`

use anyhow::Result;

use crate::admin::{ListArgs, Look, ScopeArgs, list};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{member, timestamp};
use crate::when;

/// Which clients.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Of this tier
    #[arg(long, value_name = "TIER")]
    tier: Option<String>,
    /// Of this organisation
    #[arg(long, value_name = "ORG")]
    org: Option<String>,
    /// Whose key begins so
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
  0  listed, even if there is nothing
  2  wrong usage, no answer, no valid token"#;

/// Prints them.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "clients"]).query_some("tier", args.tier.as_deref());
    let call = call.query_some("organisation", args.org.as_deref()).query_some("prefix", args.prefix.as_deref());
    let now = when::now();
    let look = Look {
        member: "clients",
        heading: ["CLIENT", "TIER", "ORGANISATION", "ATTRIBUTES", "UPDATED"],
        row: &|entry| {
            let word = |name: &str| member(entry, name);
            let attributes = word("attributes").trim_matches(['{', '}', ' ']).to_owned();
            let updated = timestamp(&word("updated_at"), now);
            [word("client_key"), word("tier"), word("organisation"), attributes, updated]
        },
        empty: "no such clients",
    };
    list(&mut admin, &call, &args.list, &look, out)
}
