//! `tollgate namespaces list`

use anyhow::Result;
use serde_json::Value;

use crate::admin::{ListArgs, ListTable, ServerArgs};
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::member;

/// Output flags.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    server: ServerArgs,
}

const HELP: &str = r#"Lists the namespaces of the token that have rules of any source, overrides, clients or
settings. A domain in Envoy's files is a namespace.

Example:
  tollgate namespaces list

Exit codes:
  0  listed, even if there are none
  2  wrong usage, no response, no valid token"#;

/// Prints the namespaces.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.server.admin()?;
    let call = admin.get(&["v1", "namespaces"]);
    let rules = |source: &'static str| move |entry: &Value| member(entry.get("rules").unwrap_or_default(), source);
    ListTable::new("namespaces", "no namespace has rules")
        .field("NAMESPACE", "namespace")
        .column("DATABASE", rules("database"))
        .column("FILE", rules("file"))
        .column("ENVOY", rules("envoy"))
        .print_pages(&mut admin, &call, &args.list, out)
}
