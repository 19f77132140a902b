//! `tollgate audit verify`

use anyhow::Result;
use serde_json::Value;

use crate::admin::ServerReadArgs;
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::member;

/// The server.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    read: ServerReadArgs,
}

const HELP: &str = r#"Verifies the whole chain of hashes. Detects rows that were changed with SQL, unless all
later hashes were recomputed as well: keep the last hash elsewhere to detect that.

Exit codes:
  0  every row is intact
  1  some rows are not
  2  wrong usage, no response, no valid token"#;

/// Verifies the log.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.read.server.admin()?;
    let call = admin.get(&["v1", "audit", "verify"]);
    let response = match admin.send_long(&call, "verifying", out) {
        Ok(response) => response,
        Err(error) => {
            out.error(&error);
            return Ok(Exit::Unusable); // 1 would mean that the audit log is broken
        }
    };
    let body = response.json()?;
    let intact = body.get("intact") == Some(&Value::Bool(true));
    let palette = out.palette();
    match (args.read.json, intact) {
        (true, _) => out.line(&response.text())?,
        (false, true) => out.line(&format!("{}: {} rows", palette.good("intact"), member(&body, "rows")))?,
        (false, false) => {
            let place = member(&body, "broken_at");
            out.line(&format!("{}: row {place} was changed, or the row before it is missing", palette.bad("broken")))?;
        }
    }
    Ok(Exit::from_success(intact))
}
