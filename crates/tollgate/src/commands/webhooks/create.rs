//! `tollgate webhooks create URL`

use anyhow::{Context, Result};
use hyper::Method;
use serde_json::{Map, Value};

use crate::admin::ServerArgs;
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::{member, visible};

/// The webhook to create.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Where events are sent: https://HOST/PATH
    #[arg(value_name = "URL")]
    target: String,
    /// Name of the webhook: its purpose
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only these events: quota_mark, denial_spike, client_refused_steadily, penalty_begun, breaker_open, fallback_active, reload_failing
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    events: Vec<String>,
    /// Print only the secret
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

const HELP: &str = r#"The secret is printed once; it is stored nowhere. Messages are signed with it as Standard
Webhooks has it (standardwebhooks.com), whose libraries verify them. The server needs the
setting `webhooks`.

Examples:
  tollgate webhooks create https://hooks.example.com/tollgate --name "on call"
  Only what wakes people up, with the secret into a file:
    (umask 077; tollgate webhooks create https://hooks.example.com/x \
      --events breaker_open,fallback_active --quiet > webhook-secret)

Exit codes:
  0  created
  1  rejected: the URL is not allowed, webhooks are off
  2  wrong usage, no response, no valid token"#;

/// Creates the webhook.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut body = Map::new();
    body.insert("url".to_owned(), args.target.as_str().into());
    body.extend(args.name.as_deref().map(|name| ("name".to_owned(), name.into())));
    if !args.events.is_empty() {
        body.insert("events".to_owned(), args.events.clone().into());
    }
    let mut admin = args.server.admin()?;
    // Without an idempotency key: the server would have to store the response, and the secret in it.
    let call = admin.call(Method::POST, &["v1", "webhooks"]).json(Value::from(body).to_string());
    let response = admin.send(&call)?;
    let made = response.json()?;
    let secret = made.get("secret").and_then(Value::as_str).context("the response contains no secret")?;
    if args.json {
        out.line(&response.text())?;
    } else if args.quiet {
        out.line(secret)?;
    } else {
        let about = format!("created webhook {}: {}", member(&made, "webhook_id"), member(&made, "url"));
        out.line(&visible(&about))?;
        out.line(&out.palette().strong(secret))?;
        out.line(&out.palette().faint("keep it: it is not shown again"))?;
    }
    Ok(Exit::Ok)
}
