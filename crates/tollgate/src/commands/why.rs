//! `tollgate why`: why a request was decided as it was.

use anyhow::{Result, bail};
use serde_json::Value;

use crate::admin::EveryScopeArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::when;
use tollgate_terminal::{decision_text, decisions_text};

/// Which decision.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The id of the decision: the header field X-Decision-Id, `decision_id` in logs and refusals
    #[arg(value_name = "ID", required_unless_present = "client")]
    id: Option<String>,
    /// The last decisions about this client instead: its key, or the digest that is shown of it
    #[arg(long, value_name = "KEY", conflicts_with = "id")]
    client: Option<String>,
    /// Only those that this rule took part in
    #[arg(long, value_name = "RULE_ID", conflicts_with = "id")]
    rule: Option<String>,
    /// Print at most N decisions
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    limit: u64,
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: EveryScopeArgs,
}

const HELP: &str = r#"Shows which rule decided, by which limit, what was in use at that moment, since when the
client is refused, and when it may return. All nodes of the fleet are asked: each keeps its
last decisions in memory; all of them are in its decision log.

Examples:
  tollgate why 3a309775852f7d68
  tollgate why --client user:42

Exit codes:
  0  found
  1  no node has such a decision (any more)
  2  wrong usage, no response, no valid token"#;

/// Prints the decision, or the last ones about a client.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = match (&args.id, &args.client) {
        (Some(id), _) => admin.get(&["v1", "decisions", id]),
        (None, Some(client)) => admin
            .get(&["v1", "decisions"])
            .query("client", client)
            .query_some("rule", args.rule.as_deref())
            .query("limit", &args.limit.to_string()),
        (None, None) => bail!("name a decision, or a client with --client"),
    };
    let response = admin.send(&call)?;
    let found = response.json()?;
    let decisions = found.get("decisions").and_then(Value::as_array);
    let exit = Exit::from_success(decisions.is_none_or(|decisions| !decisions.is_empty()));
    match (args.json, decisions) {
        (true, _) => out.line(&response.text())?,
        (false, None) => out.text(&decision_text(&found, when::now(), out.palette()))?,
        (false, Some(_)) => out.text(&decisions_text(&found, when::now(), out.palette()))?,
    }
    Ok(exit)
}
