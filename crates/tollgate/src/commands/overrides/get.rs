//! `tollgate overrides get ID`

use anyhow::Result;
use serde_json::Value;

use super::words::{numbers, state};
use crate::admin::{ScopeReadArgs, details, print_record};
use crate::exit::Exit;
use crate::output::Output;
use crate::when;

/// The override.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Id of the override, as shown by `overrides list`
    #[arg(value_name = "OVERRIDE_ID")]
    override_id: String,
    #[command(flatten)]
    read: ScopeReadArgs,
}

const HELP: &str = r#"Examples:
  tollgate overrides get ov-7f3a
  tollgate overrides get ov-7f3a --json | jq -r .valid_until

Exit codes:
  0  printed
  1  no such override
  2  wrong usage, no response, no valid token"#;

/// Prints the override.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let segments = ["v1", "overrides", &args.override_id];
    print_record(&mut args.read.scope.admin()?, &segments, args.read.json, out, |mut entry, out| {
        let computed = [("limit", numbers(&entry)), ("state", state(&entry, when::now()).to_owned())];
        if let Some(fields) = entry.as_object_mut() {
            for hidden in ["max_requests", "burst_size", "unlimited"] {
                fields.remove(hidden);
            }
            fields.extend(computed.map(|(name, text)| (name.to_owned(), Value::from(text))));
        }
        let order = ["override_id", "client_key", "rule_id", "limit", "state", "valid_from", "valid_until", "reason"];
        details(&entry, &order, out)
    })
}
