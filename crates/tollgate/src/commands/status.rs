//! `tollgate status`

use anyhow::Result;
use serde_json::Value;

use crate::admin::{ServerArgs, details};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{member, visible};

/// Of which server.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

const HELP: &str = r#"Which generation the node decides by, whether its database answers, what it could
not read and left out; and who you are to it.

Examples:
  tollgate status
  Do all nodes serve the same generation?
    for node in a b c; do
      tollgate status --url http://$node:8090 --json | jq .generation
    done

Exit codes:
  0  all is well
  1  something wants looking at: the database is away, or rows are quarantined
  2  wrong usage, no answer, no valid token"#;

/// Prints it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.server.admin()?;
    let call = admin.get(&["v1", "status"]);
    let answer = admin.send(&call)?;
    let status = answer.json()?;
    if args.json {
        out.line(&answer.text())?;
    } else {
        details(&status, &["generation", "mode", "database"], out)?;
        let call = admin.get(&["v1", "whoami"]);
        let me = admin.send(&call)?.json()?;
        let name = format!("{} ({}), {}", member(&me, "name"), member(&me, "token_id"), member(&me, "role"));
        out.line(&format!("you are {}", visible(&name)))?;
    }
    Ok(Exit::from_success(is_well(&status)))
}

fn is_well(status: &Value) -> bool {
    let quarantined = status.get("quarantined").and_then(Value::as_array).is_some_and(|rows| !rows.is_empty());
    let away = status.get("database").and_then(|database| database.get("state").unwrap_or(database).as_str());
    !quarantined && away != Some("away")
}
