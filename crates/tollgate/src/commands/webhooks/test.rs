//! `tollgate webhooks test ID`

use anyhow::Result;
use hyper::Method;
use serde_json::Value;

use crate::admin::ServerArgs;
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::{member, visible};

/// The webhook.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Id of the webhook, as shown by `webhooks list`
    #[arg(value_name = "WEBHOOK_ID")]
    webhook_id: String,
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

const HELP: &str = r#"Sends a message of the kind `test`, and prints how its first attempt ended. One that fails
is tried again like any other.

Examples:
  tollgate webhooks test wh_k7m2p4q8s3td

Exit codes:
  0  it arrived
  1  it did not, or there is no such webhook
  2  wrong usage, no response, no valid token"#;

/// Sends the message.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.server.admin()?;
    let call = admin.call(Method::POST, &["v1", "webhooks", &args.webhook_id, "test"]);
    let response = admin.send(&call)?;
    let delivery = response.json()?;
    let has_arrived = delivery.get("state").and_then(Value::as_str) == Some("delivered");
    if args.json {
        out.line(&response.text())?;
    } else {
        let status = delivery.get("status").and_then(Value::as_i64).map(|status| format!("status {status}"));
        let error = delivery.get("error").and_then(Value::as_str).map(str::to_owned);
        let how = [status, error].into_iter().flatten().collect::<Vec<String>>().join(": ");
        let how = if how.is_empty() { "no attempt yet".to_owned() } else { how };
        let outcome = if has_arrived { "delivered" } else { "not delivered" };
        out.line(&visible(&format!("{outcome} {}: {how}", member(&delivery, "event_id"))))?;
    }
    Ok(Exit::from_success(has_arrived))
}
