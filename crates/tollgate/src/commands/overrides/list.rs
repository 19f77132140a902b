//! `tollgate overrides list`

use anyhow::Result;

use super::words::{numbers, state};
use crate::admin::{EveryScopeArgs, ListArgs, ListTable};
use crate::exit::Exit;
use crate::output::Output;
use crate::when;
use tollgate_terminal::source_words;

/// Filters.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Only overrides of this client
    #[arg(long, value_name = "KEY")]
    client: Option<String>,
    /// Only overrides of this rule
    #[arg(long, value_name = "RULE_ID")]
    rule: Option<String>,
    /// Only overrides that apply now
    #[arg(long)]
    active: bool,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    scope: EveryScopeArgs,
}

const HELP: &str = r#"Lists the overrides of the rules file first, with file and line under STATE, then those in
the database; of all namespaces unless --namespace names one.

Examples:
  tollgate overrides list --active
  tollgate overrides list --client key:acme-prod

Exit codes:
  0  listed, even if there are none
  2  wrong usage, no response, no valid token"#;

/// Prints the overrides.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "overrides"]).query_each([
        ("active", args.active.then_some("true")),
        ("client_key", args.client.as_deref()),
        ("rule_id", args.rule.as_deref()),
    ]);
    let now = when::now();
    ListTable::new("overrides", "no such overrides")
        .namespace_if(!args.scope.is_one())
        .field("OVERRIDE", "override_id")
        .field("CLIENT", "client_key")
        .field("RULE", "rule_id")
        .column("LIMIT", numbers)
        .column("STATE", move |entry| match entry.get("location") {
            Some(_) => format!("{}, {}", state(entry, now), source_words(entry)),
            None => state(entry, now).to_owned(),
        })
        .time("UNTIL", "valid_until", "-")
        .field("REASON", "reason")
        .print_pages(&mut admin, &call, &args.list, out)
}
