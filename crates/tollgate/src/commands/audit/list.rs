//! `tollgate audit list`

use anyhow::Result;
use serde_json::Value;

use crate::admin::{ListArgs, ListTable, PeriodArgs, ScopeArgs, author};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{field_changes, member};

/// Which changes; also the flags of `tollgate audit` itself.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct AuditListArgs {
    /// About this kind of thing
    #[arg(long, value_name = "KIND", value_parser = ["rule", "override", "client", "namespace", "token", "mode", "everything"])]
    kind: Option<String>,
    /// About the thing of this id
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// By this token (its id)
    #[arg(long, value_name = "TOKEN_ID")]
    author: Option<String>,
    #[command(flatten)]
    period: PeriodArgs,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

/// What both ways to ask for it show.
pub const HELP: &str = r#"Every change of a rule, an override, a client, a token or the mode is a row, written
with the change or not at all; each row carries a hash over itself and the row
before.

Examples:
  tollgate audit --from 2h
  Who touched this rule?
    tollgate audit list --kind rule --id orders-per-user
  Has anybody touched the audit?
    tollgate audit verify

Exit codes:
  0  listed, even if there is nothing
  2  wrong usage, no answer, no valid token"#;

/// Prints them.
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

/// The fields that differ, in one line.
fn what(entry: &Value) -> String {
    let side = |name: &str| entry.get(name).filter(|value| !value.is_null());
    match (side("before"), side("after")) {
        (None, None) => "-".to_owned(),
        (None, Some(_)) => "made".to_owned(),
        (Some(_), None) => "deleted".to_owned(),
        (Some(before), Some(after)) => field_changes(before, after).join("; "),
    }
}
