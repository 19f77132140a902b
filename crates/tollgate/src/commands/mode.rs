//! `tollgate mode [MODE]`: the switch for bad days.

use anyhow::Result;
use hyper::Method;
use serde_json::{Value, json};

use crate::admin::ServerReadArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{member, timestamp, visible};
use crate::when;

/// Which mode.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Set it; without this it is printed
    #[arg(value_name = "MODE", value_parser = ["enforce", "shadow", "off"])]
    mode: Option<String>,
    #[command(flatten)]
    read: ServerReadArgs,
}

const HELP: &str = r#"  enforce  as the rules say
  shadow   every rule decides, is counted and reported, and never denies
  off      everything is allowed, nothing is counted

Works without the store and without the database: then it holds for the node that
was asked alone (scope node), and for the fleet as soon as the database is back.

Examples:
  tollgate mode
  Something is wrong with the limits; let everybody in:
    tollgate mode off
  And back:
    tollgate mode enforce

Exit codes:
  0  printed, or set
  2  wrong usage, no answer, no valid token (shadow and enforce take one of on-call, operator or admin; off takes an admin's)"#;

/// Prints or sets it.
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
    // A mode that nobody ever set holds since the beginning of time.
    let since = body.get("since").and_then(Value::as_str).filter(|since| !since.starts_with("1970"));
    let since = since.map(|since| format!(", since {}", timestamp(since, when::now())));
    let scope = match member(&body, "scope").as_str() {
        "node" => ", this node alone: the fleet will follow when the database is back",
        _ => ", the whole fleet",
    };
    out.line(&format!("{painted}{}{scope}", visible(&since.unwrap_or_default())))?;
    Ok(Exit::Ok)
}
