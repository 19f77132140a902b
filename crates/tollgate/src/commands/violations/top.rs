//! `tollgate violations top`

use anyhow::Result;
use serde_json::Value;
use tollgate_core::Time;

use super::list::refused;
use crate::admin::{ScopeArgs, table};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{member, timestamp};
use crate::when;

/// Of what, since when.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Count by this
    #[arg(long, value_name = "WHAT", default_value = "client", value_parser = ["client", "rule", "endpoint"])]
    by: String,
    /// By this rule
    #[arg(long, value_name = "RULE_ID")]
    rule: Option<String>,
    /// Of this client
    #[arg(long, value_name = "KEY")]
    client: Option<String>,
    /// Only of rules in shadow mode (true), or only of others (false)
    #[arg(long, value_name = "BOOL")]
    shadow: Option<bool>,
    /// Not before: RFC 3339, or how long ago (2h)
    #[arg(long, value_name = "TIME", value_parser = when::ago)]
    from: Option<Time>,
    /// Before: RFC 3339, or how long ago
    #[arg(long, value_name = "TIME", value_parser = when::ago)]
    to: Option<Time>,
    /// Print so many
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    limit: u64,
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Examples:
  tollgate violations top --from 1d
  Which rule refuses most?
    tollgate violations top --by rule --limit 3

Exit codes:
  0  listed, even if there is nothing
  2  wrong usage, no answer, no valid token"#;

/// Prints them, the worst first.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "violations", "top"]).query("by", &args.by).query("limit", &args.limit.to_string());
    let call = call.query_some("rule_id", args.rule.as_deref()).query_some("client_key", args.client.as_deref());
    let call = call.query_some("shadow", args.shadow.map(|shadow| shadow.to_string()).as_deref());
    let call = call.query_some("from", args.from.map(when::text).as_deref());
    let call = call.query_some("to", args.to.map(when::text).as_deref());
    let response = admin.send(&call)?;
    if args.json {
        out.line(&response.text())?;
        return Ok(Exit::Ok);
    }
    let now = when::now();
    let row = |entry: &Value| {
        let last = timestamp(&member(entry, "last_violated_at"), now);
        [member(entry, "what"), refused(entry), last]
    };
    let heading = [args.by.to_uppercase(), "REFUSED".to_owned(), "LAST".to_owned()];
    let [by, refused, last] = &heading;
    table(&response.json()?, "offenders", [by, refused, last], row, out)?;
    Ok(Exit::Ok)
}
