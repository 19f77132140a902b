//! `tollgate rules generations`

use anyhow::Result;

use crate::admin::{ListArgs, Look, ScopeArgs, list};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{member, timestamp};
use crate::when;

/// How many.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Every change makes a generation, the latest first; each decision says by which one
it was made.

Examples:
  tollgate rules generations --limit 10
  What changed since, and the way back:
    tollgate rules diff --from 12
    tollgate rules rollback 12

Exit codes:
  0  listed
  2  wrong usage, no answer, no valid token"#;

/// Prints them.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let (call, now) = (admin.get(&["v1", "generations"]), when::now());
    let look = Look {
        member: "generations",
        heading: ["GENERATION", "WHEN", "WHO", "WHAT FOR", "CHANGES"],
        row: &|entry| {
            let word = |name: &str| member(entry, name);
            let who = crate::admin::author(entry);
            [word("generation"), timestamp(&word("at"), now), who, word("action"), word("changes")]
        },
        empty: "nothing has been changed yet",
    };
    list(&mut admin, &call, &args.list, &look, out)
}
