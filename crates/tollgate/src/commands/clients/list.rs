//! `tollgate clients list`

use anyhow::Result;
use serde_json::Value;

use crate::admin::{ListArgs, ListTable, ScopeArgs};
use crate::exit::Exit;
use crate::output::Output;
use crate::when;
use tollgate_terminal::{member, source_words, timestamp};

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

const HELP: &str = r#"Lists the clients of the rules file first, with file and line under UPDATED, then those
of the database.

Examples:
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
    let now = when::now();
    ListTable::new("clients", "no such clients")
        .field("CLIENT", "client_key")
        .field("TIER", "tier")
        .field("PLAN", "plan")
        .field("ORGANISATION", "organisation")
        .column("ATTRIBUTES", |entry| member(entry, "attributes").trim_matches(['{', '}', ' ']).to_owned())
        .column("UPDATED", move |entry| match entry.get("updated_at").and_then(Value::as_str) {
            Some(at) => timestamp(at, now),
            None => source_words(entry),
        })
        .print_pages(&mut admin, &call, &args.list, out)
}
