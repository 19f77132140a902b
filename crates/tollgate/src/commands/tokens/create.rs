//! `tollgate tokens create`

use anyhow::{Context, Result};
use hyper::Method;
use serde_json::{Map, Value};
use tollgate_core::{Span, Time};
use tollgate_rules::duration;

use crate::admin::ServerArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::when;
use tollgate_terminal::{member, timestamp, visible};

/// The token to create.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Name of the token: its owner or purpose
    #[arg(long, value_name = "NAME")]
    name: String,
    /// check only asks for decisions; viewer reads; on-call also switches rules to shadow and back; operator also
    /// changes rules, overrides and clients; admin also manages tokens and sets the mode off
    #[arg(long, value_name = "ROLE", value_parser = ["check", "viewer", "on-call", "operator", "admin"])]
    role: String,
    /// Restrict the token to these namespaces: NS,NS
    #[arg(long, value_name = "NS", value_delimiter = ',')]
    namespaces: Vec<String>,
    /// Expires after this duration: 30d
    #[arg(long, value_name = "DURATION", value_parser = when::span, conflicts_with = "expires_at")]
    expires_in: Option<Span>,
    /// Expires at this time: 2027-01-01T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    expires_at: Option<Time>,
    /// Print only the token
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

const HELP: &str = r#"The token is printed once; the server stores only a hash of it.

Examples:
  For a dashboard:
    tollgate tokens create --name grafana --role viewer
  For CI, into a file:
    (umask 077; tollgate tokens create --name ci --role operator \
      --namespaces shop --expires-in 90d --quiet > ci-token)

Exit codes:
  0  created
  1  rejected: invalid values
  2  wrong usage, no response, no valid token"#;

/// Creates the token.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let now = when::now();
    let mut body = Map::new();
    body.insert("name".to_owned(), args.name.as_str().into());
    body.insert("role".to_owned(), args.role.as_str().into());
    if !args.namespaces.is_empty() {
        body.insert("namespaces".to_owned(), args.namespaces.clone().into());
    }
    body.extend(args.expires_at.map(|time| ("expires_at".to_owned(), when::text(time).into())));
    // Relative to the server's clock.
    body.extend(args.expires_in.map(|span| ("expires_in".to_owned(), duration::display(span.nanos()).into())));
    let mut admin = args.server.admin()?;
    // Without an idempotency key: the server would have to store the response, and the secret in it.
    let call = admin.call(Method::POST, &["v1", "tokens"]).json(Value::from(body).to_string());
    let response = admin.send(&call)?;
    let made = response.json()?;
    let token = made.get("token").and_then(Value::as_str).context("the response contains no token")?;
    if args.json {
        out.line(&response.text())?;
    } else if args.quiet {
        out.line(token)?;
    } else {
        let expiry = made.get("expires_at").and_then(Value::as_str);
        let expiry = expiry.map_or_else(|| "never expires".to_owned(), |at| format!("expires {}", timestamp(at, now)));
        let about = format!("created {} token {} for {}: {expiry}", args.role, member(&made, "token_id"), args.name);
        out.line(&visible(&about))?;
        out.line(&out.palette().strong(token))?;
        out.line(&out.palette().faint("keep it: it is not shown again"))?;
    }
    Ok(Exit::Ok)
}
