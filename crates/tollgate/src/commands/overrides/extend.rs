//! `tollgate overrides extend ID`

use anyhow::{Context, Result};
use hyper::Method;
use serde_json::{Value, json};
use tollgate_core::{Span, Time};
use tollgate_rules::datetime;

use super::words::line;
use crate::admin::{ChangeArgs, ScopeArgs};
use crate::exit::Exit;
use crate::output::Output;
use crate::when;
use tollgate_terminal::visible;

/// The override, and its new end.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP, group = clap::ArgGroup::new("end").required(true))]
pub struct Args {
    /// Id of the override
    #[arg(value_name = "OVERRIDE_ID")]
    override_id: String,
    /// New end: 2026-12-02T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = when::instant, group = "end")]
    until: Option<Time>,
    /// New end, from now: 2h
    #[arg(long = "for", id = "span", value_name = "DURATION", value_parser = when::span, group = "end")]
    span: Option<Span>,
    /// New end, after the current end: 7d
    #[arg(long, value_name = "DURATION", value_parser = when::span, group = "end")]
    by: Option<Span>,
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Examples:
  tollgate overrides extend ov-7f3a --by 7d
  tollgate overrides extend ov-7f3a --until 2026-12-02T00:00:00Z

Exit codes:
  0  done; with --dry-run: valid
  1  rejected: no such override, or it was changed in the meantime
  2  wrong usage, no response, no valid token"#;

/// Changes the end of the override.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let path = ["v1", "overrides", &args.override_id];
    let (before, etag) = admin.fetch(&path)?;
    let now = when::now();
    let until = match (args.until, args.span, args.by) {
        (Some(until), _, _) => until,
        (_, Some(span), _) => when::after(now, span)?,
        (_, _, by) => when::after(end(&before)?, by.unwrap_or(Span::ZERO))?,
    };
    let call = admin.call(Method::PATCH, &path).if_match(&etag);
    let call = args.change.call(call.merge_patch(json!({ "valid_until": when::text(until) }).to_string()));
    let response = admin.send(&call)?;
    args.change.print(&response, out, |response, palette| {
        let id = palette.strong(&args.override_id);
        Ok(format!("override {id}: {}", visible(&line(&response.json()?, now))))
    })?;
    Ok(Exit::Ok)
}

fn end(entry: &Value) -> Result<Time> {
    let text = entry.get("valid_until").and_then(Value::as_str).context("the response has no valid_until")?;
    datetime::parse(text).map(Time::from_nanos).map_err(anyhow::Error::msg)
}
