//! `tollgate tokens list`

use anyhow::Result;
use serde_json::Value;

use crate::admin::{ServerArgs, table};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{member, timestamp};
use crate::when;

/// For whom.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

const HELP: &str = r#"Examples:
  tollgate tokens list
  Which were never used?
    tollgate tokens list --json | jq -r '.tokens[] | select(.last_used_at == null).name'

Exit codes:
  0  listed
  2  wrong usage, no answer, no valid token"#;

/// Prints them.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.server.admin()?;
    let call = admin.get(&["v1", "tokens"]);
    let response = admin.send(&call)?;
    if args.json {
        out.line(&response.text())?;
        return Ok(Exit::Ok);
    }
    let now = when::now();
    let time = |entry: &Value, name: &str, never: &str| {
        entry.get(name).and_then(Value::as_str).map_or_else(|| never.to_owned(), |text| timestamp(text, now))
    };
    let row = |entry: &Value| {
        let namespaces = entry.get("namespaces").filter(|list| !list.is_null()).map(|_| member(entry, "namespaces"));
        [
            member(entry, "token_id"),
            member(entry, "name"),
            member(entry, "role"),
            namespaces.unwrap_or_else(|| "all".to_owned()),
            time(entry, "expires_at", "never"),
            time(entry, "last_used_at", "never"),
        ]
    };
    let heading = ["TOKEN", "NAME", "ROLE", "NAMESPACES", "EXPIRES", "LAST USED"];
    table(&response.json()?, "tokens", heading, row, out)?;
    Ok(Exit::Ok)
}
