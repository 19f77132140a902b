//! `tollgate tokens list`

use anyhow::Result;
use serde_json::Value;

use crate::admin::{ListTable, ServerReadArgs};
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::member;

/// Output flags.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    read: ServerReadArgs,
}

const HELP: &str = r#"Examples:
  tollgate tokens list
  Tokens that were never used:
    tollgate tokens list --json | jq -r '.tokens[] | select(.last_used_at == null).name'

Exit codes:
  0  listed
  2  wrong usage, no response, no valid token"#;

/// Prints the tokens.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.read.server.admin()?;
    let call = admin.get(&["v1", "tokens"]);
    ListTable::new("tokens", "none")
        .field("TOKEN", "token_id")
        .field("NAME", "name")
        .field("ROLE", "role")
        .column("NAMESPACES", |entry| match entry.get("namespaces") {
            None | Some(Value::Null) => "all".to_owned(),
            Some(_) => member(entry, "namespaces"),
        })
        .time("EXPIRES", "expires_at", "never")
        .time("LAST USED", "last_used_at", "never")
        .print_whole(&mut admin, &call, args.read.json, out)
}
