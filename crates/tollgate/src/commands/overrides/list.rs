//! `tollgate overrides list`

use anyhow::Result;
use serde_json::Value;

use super::words::{numbers, state};
use crate::admin::{EveryScopeArgs, ListArgs, Look, list};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{member, timestamp};
use crate::when;

/// Which overrides.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Of this client
    #[arg(long, value_name = "KEY")]
    client: Option<String>,
    /// Of this rule
    #[arg(long, value_name = "RULE_ID")]
    rule: Option<String>,
    /// Those that hold now
    #[arg(long)]
    active: bool,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    scope: EveryScopeArgs,
}

const HELP: &str = r#"Those of the database, of all namespaces unless --namespace names one. What a rules file
says of its clients is in the file; explain shows it.

Examples:
  tollgate overrides list --active
  tollgate overrides list --client key:acme-prod

Exit codes:
  0  listed, even if there is nothing
  2  wrong usage, no answer, no valid token"#;

const HEADING: [&str; 7] = ["OVERRIDE", "CLIENT", "RULE", "LIMIT", "STATE", "UNTIL", "REASON"];

/// Prints them.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "overrides"]).query_some("active", args.active.then_some("true"));
    let call = call.query_some("client_key", args.client.as_deref()).query_some("rule_id", args.rule.as_deref());
    let now = when::now();
    let cells = |entry: &Value| {
        let word = |name: &str| member(entry, name);
        let (id, client, rule, until) =
            (word("override_id"), word("client_key"), word("rule_id"), timestamp(&word("valid_until"), now));
        [id, client, rule, numbers(entry), state(entry, now).to_owned(), until, word("reason")]
    };
    let empty = "no such overrides";
    if args.scope.is_one() {
        let look = Look { member: "overrides", heading: HEADING, row: &cells, empty };
        return list(&mut admin, &call, &args.list, &look, out);
    }
    let [id, client, rule, limit, state, until, reason] = HEADING;
    let heading = ["NAMESPACE", id, client, rule, limit, state, until, reason];
    let row = |entry: &Value| {
        let [id, client, rule, limit, state, until, reason] = cells(entry);
        [member(entry, "namespace"), id, client, rule, limit, state, until, reason]
    };
    list(&mut admin, &call, &args.list, &Look { member: "overrides", heading, row: &row, empty }, out)
}
