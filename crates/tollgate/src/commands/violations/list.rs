//! `tollgate violations list`

use anyhow::Result;

use super::filter::{FilterArgs, refused};
use crate::admin::{ListArgs, ListTable, ScopeArgs};
use crate::exit::Exit;
use crate::output::Output;

/// Which violations; also the flags of `tollgate violations` itself.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct ViolationListArgs {
    /// Of this endpoint
    #[arg(long, value_name = "PATH")]
    endpoint: Option<String>,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

/// What both ways to ask for it show.
pub const HELP: &str = r#"Refusals are counted by client, rule and minute, and written to the database a few
seconds later. What a rule in shadow mode would have refused is marked. COUNT is the
count that met the limit. Client keys are kept as digests (`violations_plain_keys`);
--client finds them by the key itself.

Examples:
  tollgate violations --from 1h
  tollgate violations list --client key:acme-prod
  tollgate violations top --by client --from 1d

Exit codes:
  0  listed, even if there is nothing
  2  wrong usage, no answer, no valid token"#;

/// Prints them.
pub fn run(args: &ViolationListArgs, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "violations"]).query_some("endpoint", args.endpoint.as_deref());
    ListTable::new("violations", "nobody was refused")
        .time("LAST", "last_violated_at", "-")
        .field("CLIENT", "client_key")
        .field("RULE", "rule_id")
        .field("ENDPOINT", "endpoint")
        .column("REFUSED", refused)
        .field("COUNT", "request_count")
        .field("LIMIT", "limit_value")
        .print_pages(&mut admin, &args.filter.restrict(call), &args.list, out)
}
