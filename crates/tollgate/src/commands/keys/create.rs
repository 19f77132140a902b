//! `tollgate keys create CLIENT`

use anyhow::Result;
use hyper::Method;
use serde_json::{Map, Value};
use tollgate_core::{Span, Time};
use tollgate_rules::duration;

use super::{print_key, whole_key};
use crate::admin::ScopeArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::when;
use tollgate_terminal::{member, timestamp, visible};

/// The key to create.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The client: user:42, org:acme
    #[arg(value_name = "CLIENT")]
    client: String,
    /// Name of the key: its purpose
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Expires after this duration: 90d
    #[arg(long, value_name = "DURATION", value_parser = when::span, conflicts_with = "expires_at")]
    expires_in: Option<Span>,
    /// Expires at this time: 2027-01-01T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    expires_at: Option<Time>,
    /// Print only the key
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"The key is printed once; the server stores only a digest of it. Gateways accept it
within two seconds. Tier, organisation and plan are those of the client: see `tollgate clients`.

Examples:
  A key for a mobile app of one user:
    tollgate keys create user:42 --name "mobile app"
  A key that ends by itself, into a file:
    (umask 077; tollgate keys create org:acme --expires-in 90d --quiet > acme-key)

Exit codes:
  0  created
  1  rejected: invalid values
  2  wrong usage, no response, no valid token"#;

/// Creates the key.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let now = when::now();
    let mut body = Map::new();
    body.insert("client_key".to_owned(), args.client.as_str().into());
    body.extend(args.name.as_deref().map(|name| ("name".to_owned(), name.into())));
    body.extend(args.expires_at.map(|time| ("expires_at".to_owned(), when::text(time).into())));
    // Relative to the server's clock.
    body.extend(args.expires_in.map(|span| ("expires_in".to_owned(), duration::display(span.nanos()).into())));
    let mut admin = args.scope.admin()?;
    // Without an idempotency key: the server would have to store the response, and the secret in it.
    let call = admin.call(Method::POST, &["v1", "keys"]).json(Value::from(body).to_string());
    let response = admin.send(&call)?;
    let made = response.json()?;
    let key = whole_key(&made)?;
    if args.json {
        out.line(&response.text())?;
    } else if args.quiet {
        out.line(key)?;
    } else {
        let expiry = made.get("expires_at").and_then(Value::as_str);
        let expiry = expiry.map_or_else(|| "never expires".to_owned(), |at| format!("expires {}", timestamp(at, now)));
        let about = format!("created key {} for {}: {expiry}", member(&made, "key_id"), args.client);
        print_key(&visible(&about), key, out)?;
    }
    Ok(Exit::Ok)
}
