//! `tollgate audit verify`

use anyhow::Result;
use serde_json::Value;

use crate::admin::ServerReadArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::render::member;

/// Of which server.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    read: ServerReadArgs,
}

const HELP: &str = r#"Walks the whole chain of hashes. Whoever changed rows with SQL is found out, unless
they wrote all later hashes anew: keep the last hash elsewhere to rule that out.

Exit codes:
  0  every row is as it was written
  1  some are not
  2  wrong usage, no answer, no valid token"#;

/// Checks it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.read.server.admin()?;
    let call = admin.get(&["v1", "audit", "verify"]);
    let response = match admin.send_long(&call, "verifying", out) {
        Ok(response) => response,
        Err(error) => {
            out.error(&error);
            return Ok(Exit::Unusable); // 1 would say that the audit is broken
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
            out.line(&format!(
                "{}: row {place} is not what was written, or follows a missing one",
                palette.bad("broken")
            ))?;
        }
    }
    Ok(Exit::from_success(intact))
}
