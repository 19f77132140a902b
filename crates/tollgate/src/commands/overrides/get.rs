//! `tollgate overrides get ID`

use anyhow::Result;
use serde_json::Value;

use super::words::{numbers, state};
use crate::admin::{ScopeArgs, details};
use crate::exit::Exit;
use crate::output::Output;
use crate::when;

/// Which override.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Its id, as `overrides list` shows it
    #[arg(value_name = "OVERRIDE_ID")]
    override_id: String,
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Examples:
  tollgate overrides get ov-7f3a
  tollgate overrides get ov-7f3a --json | jq -r .valid_until

Exit codes:
  0  here it is
  1  there is no such override
  2  wrong usage, no answer, no valid token"#;

/// Prints it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "overrides", &args.override_id]);
    let response = admin.send(&call)?;
    if args.json {
        out.line(&response.text())?;
        return Ok(Exit::Ok);
    }
    let mut entry = response.json()?;
    let said = [("limit", numbers(&entry)), ("state", state(&entry, when::now()).to_owned())];
    if let Some(fields) = entry.as_object_mut() {
        for hidden in ["max_requests", "burst_size", "unlimited"] {
            fields.remove(hidden);
        }
        fields.extend(said.map(|(name, text)| (name.to_owned(), Value::from(text))));
    }
    let order = ["override_id", "client_key", "rule_id", "limit", "state", "valid_from", "valid_until", "reason"];
    details(&entry, &order, out)?;
    Ok(Exit::Ok)
}
