//! `tollgate grants list`

use anyhow::Result;

use crate::admin::{EveryScopeArgs, ListArgs, ListTable};
use crate::exit::Exit;
use crate::output::Output;

/// Filters.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Only grants to this client
    #[arg(long, value_name = "KEY")]
    client: Option<String>,
    /// Only grants of this rule
    #[arg(long, value_name = "RULE_ID")]
    rule: Option<String>,
    /// Only grants that have started and not ended
    #[arg(long)]
    active: bool,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    scope: EveryScopeArgs,
}

const HELP: &str = r#"Lists the grants in the database, of all namespaces unless --namespace names one.
Grants in rules files are not listed. Whether the period of a grant is over depends on the
client's calendar: `tollgate explain` and `tollgate usage` show what counts now.

Examples:
  tollgate grants list --active
  tollgate grants list --client key:acme-prod

Exit codes:
  0  listed, even if there are none
  2  wrong usage, no response, no valid token"#;

/// Prints the grants.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "grants"]).query_each([
        ("active", args.active.then_some("true")),
        ("client_key", args.client.as_deref()),
        ("rule_id", args.rule.as_deref()),
    ]);
    ListTable::new("grants", "no such grants")
        .namespace_if(!args.scope.is_one())
        .field("GRANT", "grant_id")
        .field("CLIENT", "client_key")
        .field("RULE", "rule_id")
        .field("AMOUNT", "amount")
        .time("FROM", "valid_from", "-")
        .time("UNTIL", "valid_until", "end of period")
        .field("REASON", "reason")
        .print_pages(&mut admin, &call, &args.list, out)
}
