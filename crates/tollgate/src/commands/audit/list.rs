//! `tollgate audit list`

use anyhow::Result;
use serde_json::Value;

use crate::admin::{ListArgs, ListTable, PeriodArgs, ScopeArgs, author};
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::{field_changes, member};

/// Which changes; also the flags of `tollgate audit` itself.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct AuditListArgs {
    /// Only changes of this kind of resource
    #[arg(long, value_name = "KIND", value_parser = ["rule", "override", "grant", "client", "plan", "namespace", "token", "key", "mode", "counter", "everything"])]
    kind: Option<String>,
    /// Only changes of the resource with this id
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Only changes by the token with this id
    #[arg(long, value_name = "TOKEN_ID")]
    author: Option<String>,
    #[command(flatten)]
    period: PeriodArgs,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

/// The help of `audit` and of `audit list`.
pub const HELP: &str = r#"Every change of a rule, override, grant, client, token or the mode is a row, written in
the same transaction as the change; each row has a hash of itself and the previous
row.

Examples:
  tollgate audit --from 2h
  The changes of one rule:
    tollgate audit list --kind rule --id orders-per-user
  Check the integrity of the log:
    tollgate audit verify

Exit codes:
  0  listed, even if there are none
  2  wrong usage, no response, no valid token"#;

/// Prints the changes.
pub fn run(args: &AuditListArgs, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.get(&["v1", "audit"]).query_each([
        ("kind", args.kind.as_deref()),
        ("id", args.id.as_deref()),
        ("author", args.author.as_deref()),
    ]);
    ListTable::new("audit", "no such changes")
        .field("NUMBER", "number")
        .time("WHEN", "at", "-")
        .column("WHO", author)
        .field("WHAT FOR", "action")
        .column("THING", |entry| match (member(entry, "kind"), member(entry, "id")) {
            (kind, id) if kind == id => id,
            (kind, id) => format!("{kind} {id}"),
        })
        .column("CHANGE", what)
        .print_pages(&mut admin, &args.period.restrict(call), &args.list, out)
}

/// The changed fields, in one line.
fn what(entry: &Value) -> String {
    let side = |name: &str| entry.get(name).filter(|value| !value.is_null());
    match (side("before"), side("after")) {
        (None, None) => "-".to_owned(),
        (None, Some(_)) => "created".to_owned(),
        (Some(_), None) => "deleted".to_owned(),
        (Some(before), Some(after)) => field_changes(before, after).join("; "),
    }
}
