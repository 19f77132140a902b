//! `tollgate audit list`

use anyhow::Result;
use serde_json::Value;
use tollgate_core::Time;

use crate::admin::{ListArgs, Look, ScopeArgs, author, list};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{field_changes, member, timestamp};
use crate::when;

/// Which rows.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    pub filter: AuditListArgs,
}

/// The same, as `tollgate audit` takes it too.
#[derive(Debug, clap::Args)]
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
    /// Not before: RFC 3339, or how long ago (2h)
    #[arg(long, value_name = "TIME", value_parser = when::ago)]
    from: Option<Time>,
    /// Before: RFC 3339, or how long ago
    #[arg(long, value_name = "TIME", value_parser = when::ago)]
    to: Option<Time>,
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
    let call = admin.get(&["v1", "audit"]).query_some("kind", args.kind.as_deref());
    let call = call.query_some("id", args.id.as_deref()).query_some("author", args.author.as_deref());
    let call = call.query_some("from", args.from.map(when::text).as_deref());
    let call = call.query_some("to", args.to.map(when::text).as_deref());
    let now = when::now();
    let look = Look {
        member: "audit",
        heading: ["NUMBER", "WHEN", "WHO", "WHAT FOR", "THING", "CHANGE"],
        row: &|entry| {
            let word = |name: &str| member(entry, name);
            let thing =
                if word("kind") == word("id") { word("id") } else { format!("{} {}", word("kind"), word("id")) };
            [word("number"), timestamp(&word("at"), now), author(entry), word("action"), thing, what(entry)]
        },
        empty: "no such changes",
    };
    list(&mut admin, &call, &args.list, &look, out)
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
