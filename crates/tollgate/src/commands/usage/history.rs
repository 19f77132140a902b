//! `tollgate usage history`

use anyhow::Result;
use serde_json::Value;
use tollgate_terminal::member;

use crate::admin::{AdminClient, EveryScopeArgs, ListArgs, ListTable, PeriodArgs};
use crate::client::ApiCall;
use crate::exit::Exit;
use crate::output::Output;

/// Filters by client, organisation, rule and time.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Only of this client
    #[arg(long, value_name = "KEY")]
    client: Option<String>,
    /// Only of the clients of this organisation
    #[arg(long, value_name = "ORG")]
    org: Option<String>,
    /// Only of this rule
    #[arg(long, value_name = "RULE_ID")]
    rule: Option<String>,
    #[command(flatten)]
    period: PeriodArgs,
    /// Print all entries as CSV (RFC 4180), with a line of headings
    #[arg(long, conflicts_with_all = ["json", "limit", "all"])]
    csv: bool,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    scope: EveryScopeArgs,
}

const HELP: &str = r#"Usage of quotas is written to the database a few seconds after it changed, one row per
client, rule and period; AS OF is when the store said so. Client keys are stored as digests
(unless `usage_plain_keys` is set); --client and --org find them by the key itself.
--from and --to select the periods that overlap that time.

Examples:
  tollgate usage history --client key:acme-prod
  Every period that ended or began in November, for billing:
    tollgate usage history --from 2026-11-01T00:00:00Z --to 2026-12-01T00:00:00Z --csv > usage.csv

Exit codes:
  0  listed, even if there is none
  2  wrong usage, no response, no valid token"#;

/// Prints the history.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "usage"]).query_each([
        ("client_key", args.client.as_deref()),
        ("organisation", args.org.as_deref()),
        ("rule_id", args.rule.as_deref()),
    ]);
    let call = args.period.restrict(call);
    if args.csv {
        return print_csv(&mut admin, &call.query("format", "csv").query("limit", "1000"), out);
    }
    ListTable::new("usage", "no usage")
        .namespace_if(!args.scope.is_one())
        .column("CLIENT", |entry| member_or(entry, "client_key", "?"))
        .field("RULE", "rule_id")
        .column("PERIOD", period)
        .field("USED", "used")
        .column("LIMIT", |entry| member_or(entry, "limit_value", "?"))
        .time("AS OF", "as_of", "-")
        .print_pages(&mut admin, &call, &args.list, out)
}

/// Prints every page; the headings once.
fn print_csv(admin: &mut AdminClient, call: &ApiCall, out: &mut Output) -> Result<Exit> {
    let mut cursor: Option<String> = None;
    loop {
        let response = admin.send(&call.clone().query_some("cursor", cursor.as_deref()))?;
        let text = String::from_utf8_lossy(&response.body);
        let rows = match cursor {
            Some(_) => text.split_once("\r\n").map_or("", |(_, rows)| rows),
            None => &text,
        };
        out.text(rows)?;
        cursor = response.next_cursor;
        if cursor.is_none() || out.is_closed() {
            return Ok(Exit::Ok);
        }
    }
}

/// The bounds of a period, which is longer than a second.
fn period(entry: &Value) -> String {
    let bound = |name: &str, absent: &str| match entry.get(name).and_then(Value::as_str) {
        Some(text) => text.split_once('.').map_or(text.to_owned(), |(whole, _)| format!("{whole}Z")),
        None => absent.to_owned(),
    };
    format!("{} to {}", bound("period_start", "?"), bound("period_end", "for ever"))
}

fn member_or(entry: &Value, name: &str, absent: &str) -> String {
    match entry.get(name) {
        None | Some(Value::Null) => absent.to_owned(),
        Some(_) => member(entry, name),
    }
}
