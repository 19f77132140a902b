//! `tollgate overrides create`

use anyhow::Result;
use hyper::Method;
use serde_json::{Map, Value};
use tollgate_core::{Span, Time};

use super::words::line;
use crate::admin::{ChangeArgs, ScopeArgs, idempotency_key};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{member, visible};
use crate::when;

/// For whom, what, how long, why.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP, group = clap::ArgGroup::new("end").required(true))]
pub struct Args {
    /// The client: user:42, key:acme-prod
    #[arg(long, value_name = "KEY")]
    client: String,
    /// The rule whose numbers it changes
    #[arg(long, value_name = "RULE_ID")]
    rule: String,
    /// So many requests per window of the rule
    #[arg(long, value_name = "N", required_unless_present_any = ["unlimited", "burst"])]
    limit: Option<u64>,
    /// Room for so many at once
    #[arg(long, value_name = "N", conflicts_with = "unlimited")]
    burst: Option<u64>,
    /// As many as they like
    #[arg(long, conflicts_with = "limit")]
    unlimited: bool,
    /// First instant it holds: 2026-12-01T00:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    from: Option<Time>,
    /// First instant it holds no more: 2026-12-02T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = when::instant, group = "end")]
    until: Option<Time>,
    /// It holds for so long: 90s, 2h, 30d
    #[arg(long = "for", id = "span", value_name = "DURATION", value_parser = when::span, group = "end")]
    span: Option<Span>,
    /// For people who wonder later
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Its id; without one the server makes one up
    #[arg(long, value_name = "OVERRIDE_ID")]
    id: Option<String>,
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"It stops by itself at its instant, to the millisecond, whether or not the database
is there. `overrides extend` lets it last longer, `overrides end` ends it.

Examples:
  Ten times the limit for two hours, for a migration:
    tollgate overrides create --client key:acme-prod --rule orders-per-user \
      --limit 100 --for 2h --reason "migration, ticket 4711"
  No limit during a sale:
    tollgate overrides create --client key:shop --rule orders-per-user \
      --unlimited --from 2026-11-27T00:00:00Z --until 2026-11-30T00:00:00Z

Exit codes:
  0  created; with --dry-run: it would be
  1  refused: there is no such rule, or it is not valid
  2  wrong usage, no answer, no valid token"#;

/// Makes it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let now = when::now();
    let until = match args.span {
        Some(span) => Some(when::after(args.from.unwrap_or(now), span)?),
        None => args.until,
    };
    let mut body = Map::new();
    let mut put = |name: &str, value: Option<Value>| body.extend(value.map(|value| (name.to_owned(), value)));
    put("override_id", args.id.as_deref().map(Value::from));
    put("client_key", Some(args.client.as_str().into()));
    put("rule_id", Some(args.rule.as_str().into()));
    put("max_requests", args.limit.map(Value::from));
    put("burst_size", args.burst.map(Value::from));
    put("unlimited", args.unlimited.then_some(true.into()));
    put("valid_from", args.from.map(|time| when::text(time).into()));
    put("valid_until", until.map(|time| when::text(time).into()));
    put("reason", args.reason.as_deref().map(Value::from));
    let mut admin = args.scope.admin()?;
    let call = args.change.call(admin.call(Method::POST, &["v1", "overrides"]));
    let call = call.json(Value::from(body).to_string()).idempotency_key(&idempotency_key()?);
    let response = admin.send_once(&call)?;
    args.change.print(&response, out, |response, palette| {
        let entry = response.json()?;
        let id = palette.strong(&member(&entry, "override_id"));
        Ok(format!("created override {id}: {}", visible(&line(&entry, now))))
    })?;
    Ok(Exit::Ok)
}
