//! `tollgate webhooks deliveries ID`

use anyhow::Result;

use crate::admin::{ListArgs, ListTable, ServerArgs};
use crate::exit::Exit;
use crate::output::Output;

/// The webhook.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Id of the webhook, as shown by `webhooks list`
    #[arg(value_name = "WEBHOOK_ID")]
    webhook_id: String,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    server: ServerArgs,
}

const HELP: &str = r#"The latest first; kept for a week.

Examples:
  tollgate webhooks deliveries wh_k7m2p4q8s3td
  What was given up:
    tollgate webhooks deliveries wh_k7m2p4q8s3td --all --json \
      | jq '.deliveries[] | select(.state == "failed")'

Exit codes:
  0  listed, even if there are none
  1  no such webhook
  2  wrong usage, no response, no valid token"#;

/// Prints the deliveries.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.server.admin()?;
    let call = admin.get(&["v1", "webhooks", &args.webhook_id, "deliveries"]);
    ListTable::new("deliveries", "nothing was sent")
        .time("TIME", "created_at", "-")
        .field("EVENT", "event")
        .field("STATE", "state")
        .field("ATTEMPTS", "attempts")
        .field("STATUS", "status")
        .field("ERROR", "error")
        .time("NEXT", "next_at", "-")
        .print_pages(&mut admin, &call, &args.list, out)
}
