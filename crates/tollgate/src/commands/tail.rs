//! `tollgate tail`: refusals while they happen.

use std::ops::ControlFlow;

use anyhow::Result;
use serde_json::Value;

use crate::admin::EveryScopeArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::when;
use tollgate_terminal::refusal_line;

/// Which refusals.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Only of this client: its key, or the digest that is shown of it
    #[arg(long, value_name = "KEY")]
    client: Option<String>,
    /// Only by this rule
    #[arg(long, value_name = "RULE_ID")]
    rule: Option<String>,
    /// End after N refusals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print the API's JSON, one refusal per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: EveryScopeArgs,
}

const HELP: &str = r#"Prints requests that the nodes of a fleet refuse, and those that a rule in shadow mode
would have refused, until it is interrupted. Other nodes are asked once a second. In a
flood the server sends a part of them.

Examples:
  tollgate tail --rule orders-per-user
  The clients of the next hundred refusals:
    tollgate tail --count 100 --json | jq -r .client | sort | uniq -c

Exit codes:
  0  printed, or the server ended
  2  wrong usage, no response, no valid token"#;

/// Prints refusals as they come.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "events"]);
    let call = call.query_each([("rule", args.rule.as_deref()), ("client", args.client.as_deref())]);
    let mut printed = 0;
    admin.listen(&call, |event, data| {
        if event == "denied" {
            let decision: Value = serde_json::from_str(data)?;
            match args.json {
                true => out.line(data)?,
                false => out.line(&refusal_line(&decision, when::now(), out.palette()))?,
            }
            out.flush()?;
            printed += 1;
        }
        let is_done = out.is_closed() || args.count.is_some_and(|count| printed >= count);
        Ok(if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(Exit::Ok)
}
