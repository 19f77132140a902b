//! `tollgate webhooks delete ID`

use anyhow::Result;
use hyper::Method;

use crate::admin::ServerArgs;
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
    server: ServerArgs,
}

const HELP: &str = r#"What waits for it is not sent any more, and what was sent to it is forgotten.

Examples:
  tollgate webhooks delete wh_k7m2p4q8s3td

Exit codes:
  0  deleted
  1  no such webhook
  2  wrong usage, no response, no valid token"#;

/// Deletes the webhook.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.server.admin()?;
    let call = admin.call(Method::DELETE, &["v1", "webhooks", &args.webhook_id]);
    admin.send(&call)?;
    out.line(&format!("deleted webhook {}", out.palette().strong(&args.webhook_id)))?;
    Ok(Exit::Ok)
}
