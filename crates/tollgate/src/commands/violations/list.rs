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
    /// Only of this endpoint
    #[arg(long, value_name = "PATH")]
    endpoint: Option<String>,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

/// The help of `violations` and of `violations list`.
pub const HELP: &str = r#"Denied requests are counted by client, rule and minute, and written to the database a
few seconds later. Requests that a rule in shadow mode would have denied are marked.
COUNT is the count that met the limit. Client keys are stored as digests (unless
`violations_plain_keys` is set); --client finds them by the key itself.

Examples:
  tollgate violations --from 1h
  tollgate violations list --client key:acme-prod
  tollgate violations top --by client --from 1d

Exit codes:
  0  listed, even if there are none
  2  wrong usage, no response, no valid token"#;

/// Prints the violations.
pub fn run(args: &ViolationListArgs, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "violations"]).query_some("endpoint", args.endpoint.as_deref());
    ListTable::new("violations", "no violations")
        .time("LAST", "last_violated_at", "-")
        .field("CLIENT", "client_key")
        .field("RULE", "rule_id")
        .field("ENDPOINT", "endpoint")
        .column("REFUSED", refused)
        .field("COUNT", "request_count")
        .field("LIMIT", "limit_value")
        .print_pages(&mut admin, &args.filter.restrict(call), &args.list, out)
}
