//! `tollgate namespaces list`

use anyhow::Result;

use crate::admin::{ListArgs, Look, ServerArgs, list};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::member;

/// How many.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    server: ServerArgs,
}

const HELP: &str = r#"Every namespace that the token may see and that has rules of any source, overrides,
clients or settings. A domain of Envoy's files is a namespace.

Example:
  tollgate namespaces list

Exit codes:
  0  listed, even if there is nothing
  2  wrong usage, no answer, no valid token"#;

/// Prints them.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.server.admin()?;
    let call = admin.get(&["v1", "namespaces"]);
    let look = Look {
        member: "namespaces",
        heading: ["NAMESPACE", "DATABASE", "FILE", "ENVOY"],
        row: &|entry| {
            let rules = entry.get("rules").unwrap_or_default();
            let count = |source: &str| member(rules, source);
            [member(entry, "namespace"), count("database"), count("file"), count("envoy")]
        },
        empty: "no namespace has rules",
    };
    list(&mut admin, &call, &args.list, &look, out)
}
