//! `tollgate violations list`

use anyhow::Result;
use serde_json::Value;
use tollgate_core::Time;

use crate::admin::{ListArgs, Look, ScopeArgs, list};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{member, timestamp};
use crate::when;

/// Which refusals.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    pub filter: ViolationListArgs,
}

/// The same, as `tollgate violations` takes it too.
#[derive(Debug, clap::Args)]
pub struct ViolationListArgs {
    /// Of this client
    #[arg(long, value_name = "KEY")]
    client: Option<String>,
    /// Of this endpoint
    #[arg(long, value_name = "PATH")]
    endpoint: Option<String>,
    /// By this rule
    #[arg(long, value_name = "RULE_ID")]
    rule: Option<String>,
    /// Only of rules in shadow mode (true), or only of others (false)
    #[arg(long, value_name = "BOOL")]
    shadow: Option<bool>,
    /// Not before: RFC 3339, or how long ago (2h)
    #[arg(long, value_name = "TIME", value_parser = when::ago)]
    from: Option<Time>,
    /// Before: RFC 3339, or how long ago
    #[arg(long, value_name = "TIME", value_parser = when::ago)]
    to: Option<Time>,
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
    let call = admin.get(&["v1", "violations"]).query_some("client_key", args.client.as_deref());
    let call = call.query_some("endpoint", args.endpoint.as_deref()).query_some("rule_id", args.rule.as_deref());
    let call = call.query_some("shadow", args.shadow.map(|shadow| shadow.to_string()).as_deref());
    let call = call.query_some("from", args.from.map(when::text).as_deref());
    let call = call.query_some("to", args.to.map(when::text).as_deref());
    let now = when::now();
    let look = Look {
        member: "violations",
        heading: ["LAST", "CLIENT", "RULE", "ENDPOINT", "REFUSED", "COUNT", "LIMIT"],
        row: &|entry| {
            let word = |name: &str| member(entry, name);
            let last = timestamp(&word("last_violated_at"), now);
            let (client, rule) = (word("client_key"), word("rule_id"));
            [last, client, rule, word("endpoint"), refused(entry), word("request_count"), word("limit_value")]
        },
        empty: "nobody was refused",
    };
    list(&mut admin, &call, &args.list, &look, out)
}

/// How often; marked, if nothing was refused in fact.
pub fn refused(entry: &Value) -> String {
    let refused = member(entry, "refused");
    if entry.get("shadow") == Some(&Value::Bool(true)) { format!("{refused} (shadow)") } else { refused }
}
