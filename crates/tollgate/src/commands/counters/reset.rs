//! `tollgate counters reset`

use anyhow::Result;
use hyper::Method;
use serde_json::{Map, Value, json};

use crate::admin::ScopeArgs;
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::{member, visible};

/// Whose counts, and which.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The key of the client, such as user:42
    #[arg(long, value_name = "KEY")]
    client: String,
    /// Only of this rule [default: all that apply]
    #[arg(long, value_name = "RULE_ID")]
    rule: Option<String>,
    /// The endpoint, if rules ask for one: "POST /api/orders"
    #[arg(long, value_name = "ENDPOINT")]
    endpoint: Option<String>,
    /// The tier, if rules ask for one
    #[arg(long, value_name = "TIER")]
    tier: Option<String>,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Forgets what a client has used of the rules that apply to it: it may begin anew. The
audit log says who did that, and why.

Example:
  tollgate counters reset --client user:42 --rule orders-per-user --reason "ticket 4711"

Exit codes:
  0  reset
  1  no rule applies to that client
  2  wrong usage, no response, no valid token"#;

/// Resets the counts.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let mut body = Map::new();
    body.insert("client".to_owned(), json!(args.client));
    let others = [
        ("namespace", args.scope.namespace()),
        ("rule", args.rule.as_deref()),
        ("endpoint", args.endpoint.as_deref()),
        ("tier", args.tier.as_deref()),
        ("reason", args.reason.as_deref()),
    ];
    body.extend(others.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))));
    let call = admin.call_of_all(Method::POST, &["v1", "counters", "reset"]).json(Value::Object(body).to_string());
    let response = admin.send(&call)?;
    if args.json {
        out.line(&response.text())?;
        return Ok(Exit::Ok);
    }
    let reset = response.json()?;
    let rules: Vec<String> = reset
        .get("rules")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(visible)
        .collect();
    out.line(&format!("reset what {} has used of {}", visible(&member(&reset, "client")), rules.join(", ")))?;
    Ok(Exit::Ok)
}
