//! `tollgate keys rotate ID`

use anyhow::Result;
use hyper::Method;
use serde_json::{Map, Value};
use tollgate_core::Span;
use tollgate_rules::duration;

use super::{check_id, print_key, whole_key};
use crate::admin::ScopeArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::when;
use tollgate_terminal::{member, timestamp, visible};

/// The key.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Id of the key: the part between `tk_` and the next `_`, as shown by `keys list`
    #[arg(value_name = "KEY_ID")]
    key_id: String,
    /// The old secret stays valid for this duration, at most 90d [default: it ends at once]
    #[arg(long, value_name = "DURATION", value_parser = when::span)]
    overlap: Option<Span>,
    /// Print only the new key
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"The key keeps its id, so its client keeps its usage. The old secret and the new one are both
valid until the overlap ends; rotating again ends the oldest one at once.

Examples:
  Give the client a day to change over:
    tollgate keys rotate 7f3ac2d1 --overlap 24h
  After a leak:
    tollgate keys rotate 7f3ac2d1

Exit codes:
  0  rotated
  1  no such key, or it has expired
  2  wrong usage, no response, no valid token"#;

/// Rotates the key.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    check_id(&args.key_id)?;
    let now = when::now();
    let mut body = Map::new();
    let overlap = args.overlap.filter(|overlap| *overlap > Span::ZERO);
    body.extend(overlap.map(|overlap| ("overlap".to_owned(), duration::display(overlap.nanos()).into())));
    let mut admin = args.scope.admin()?;
    let call = admin.call(Method::POST, &["v1", "keys", &args.key_id, "rotate"]).json(Value::from(body).to_string());
    let response = admin.send(&call)?;
    let rotated = response.json()?;
    let key = whole_key(&rotated)?;
    if args.json {
        out.line(&response.text())?;
    } else if args.quiet {
        out.line(key)?;
    } else {
        let until = rotated.get("previous_until").and_then(Value::as_str);
        let until = until.map_or_else(
            || "the old secret is no longer valid".to_owned(),
            |until| format!("the old secret is valid until {}", timestamp(until, now)),
        );
        let about = format!("rotated key {} of {}: {until}", args.key_id, member(&rotated, "client_key"));
        print_key(&visible(&about), key, out)?;
    }
    Ok(Exit::Ok)
}
