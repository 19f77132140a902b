//! `tollgate webhooks list`

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

const HELP: &str = r#"Needs a token with the role admin for all namespaces: the URL of a webhook is often a secret.

Examples:
  tollgate webhooks list

Exit codes:
  0  listed
  2  wrong usage, no response, no valid token"#;

/// Prints the webhooks.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.read.server.admin()?;
    let call = admin.get(&["v1", "webhooks"]);
    ListTable::new("webhooks", "none")
        .field("WEBHOOK", "webhook_id")
        .field("NAME", "name")
        .field("URL", "url")
        .column("EVENTS", |entry| match entry.get("events") {
            None | Some(Value::Null) => "all".to_owned(),
            Some(_) => member(entry, "events"),
        })
        .time("CREATED", "created_at", "-")
        .print_whole(&mut admin, &call, args.read.json, out)
}
