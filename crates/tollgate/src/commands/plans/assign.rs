//! `tollgate plans assign PLAN`

use anyhow::Result;
use serde_json::{Map, Value};
use tollgate_core::Time;
use tollgate_rules::{datetime, spec};
use tollgate_service::plans::with_step;

use crate::admin::{ChangeArgs, ScopeArgs};
use crate::commands::clients::set;
use crate::exit::Exit;
use crate::output::Output;

/// The plan, and the client that gets it.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP, group = clap::ArgGroup::new("owner").required(true))]
pub struct Args {
    /// Name of the plan
    #[arg(value_name = "PLAN")]
    plan: String,
    /// The client: user:42, key:acme-prod
    #[arg(long, value_name = "KEY", group = "owner")]
    client: Option<String>,
    /// The organisation: all its clients without a plan of their own
    #[arg(long, value_name = "ORG", group = "owner")]
    org: Option<String>,
    /// From when on: 2026-12-01, or 2026-12-01T00:00:00+01:00 [default: now]
    #[arg(long, value_name = "DATE", value_parser = date)]
    from: Option<Time>,
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Without --from the plan holds at once and replaces all that was planned. With --from the
present plan holds until then, and later steps are dropped. Usage of rules that both
plans have is kept; `plans diff` shows what differs.

Examples:
  tollgate plans assign pro --client key:acme-prod
  tollgate plans assign team --org acme --from 2026-12-01

Exit codes:
  0  assigned; with --dry-run: valid
  1  rejected: no such plan, or the client was changed in the meantime
  2  wrong usage, no response, no valid token"#;

/// Assigns the plan.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let client_key = match (&args.client, &args.org) {
        (Some(client), _) => client.clone(),
        (None, org) => format!("org:{}", org.as_deref().unwrap_or_default()),
    };
    let fields = |before: &Value| {
        let plan = with_step(before.get(spec::PLAN), &args.plan, args.from.map(Time::nanos));
        Map::from_iter([(spec::PLAN.to_owned(), plan)])
    };
    set::update(&client_key, fields, &args.scope, &args.change, out)
}

fn date(text: &str) -> Result<Time, String> {
    datetime::parse_or_date(text).map(Time::from_nanos).map_err(|fault| fault.to_string())
}
