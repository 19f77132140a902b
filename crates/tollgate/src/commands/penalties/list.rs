//! `tollgate penalties list`

use anyhow::Result;

use crate::admin::{EveryScopeArgs, ListArgs, ListTable};
use crate::exit::Exit;
use crate::output::Output;

/// Filters.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Only penalties of this client
    #[arg(long, value_name = "KEY")]
    client: Option<String>,
    /// Only penalties by this rule
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    scope: EveryScopeArgs,
}

const HELP: &str = r#"Penalties are the option `penalty` of rules. Clients are digests, as in violations;
--client takes the key itself.

Examples:
  tollgate penalties list --client user:42

Exit codes:
  0  listed, even if there are none
  2  wrong usage, no response, no valid token"#;

/// Prints the penalties.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin
        .get(&["v1", "penalties"])
        .query_each([("client_key", args.client.as_deref()), ("rule_id", args.rule.as_deref())]);
    ListTable::new("penalties", "no penalties")
        .namespace_if(!args.scope.is_one())
        .field("PENALTY", "penalty_id")
        .field("CLIENT", "client_key")
        .field("RULE", "rule_id")
        .field("NUMBER", "number")
        .time("BEGUN", "begun_at", "-")
        .time("ENDS", "ends_at", "-")
        .print_pages(&mut admin, &call, &args.list, out)
}
