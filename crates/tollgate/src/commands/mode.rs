//! `tollgate mode [MODE]`: the global switch of all limits.

use anyhow::Result;
use hyper::Method;
use serde_json::{Value, json};

use crate::admin::ServerReadArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::when;
use tollgate_terminal::{member, timestamp, visible};

/// The mode.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The mode to set; without it, the current mode is printed
    #[arg(value_name = "MODE", value_parser = ["enforce", "shadow", "off"])]
    mode: Option<String>,
    #[command(flatten)]
    read: ServerReadArgs,
}

const HELP: &str = r#"  enforce  limits apply
  shadow   rules are evaluated, counted and reported, and never deny
  off      everything is allowed, nothing is counted

Works without the store and without the database: it then applies to this node alone
(scope node), and to the fleet once the database is back.

Examples:
  tollgate mode
  Allow everything, for example if limits deny by mistake:
    tollgate mode off
  Enforce limits again:
    tollgate mode enforce

Exit codes:
  0  printed or set
  2  wrong usage, no response, no valid token (shadow and enforce need the role on-call,
     operator or admin; off needs admin)"#;

/// Prints or sets the mode.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.read.server.admin()?;
    let call = match &args.mode {
        None => admin.get(&["v1", "mode"]),
        Some(mode) => admin.call(Method::PUT, &["v1", "mode"]).json(json!({ "mode": mode }).to_string()),
    };
    let response = admin.send(&call)?;
    if args.read.json {
        out.line(&response.text())?;
        return Ok(Exit::Ok);
    }
    let body = response.json()?;
    let mode = member(&body, "mode");
    let painted = match mode.as_str() {
        "enforce" => out.palette().good(&mode),
        _ => out.palette().warn(&mode),
    };
    // A mode that was never set has the time 0.
    let since = body.get("since").and_then(Value::as_str).filter(|since| !since.starts_with("1970"));
    let since = since.map(|since| format!(", since {}", timestamp(since, when::now())));
    let scope = match member(&body, "scope").as_str() {
        "node" => ", this node alone: the fleet follows once the database is back",
        _ => ", the whole fleet",
    };
    out.line(&format!("{painted}{}{scope}", visible(&since.unwrap_or_default())))?;
    Ok(Exit::Ok)
}
