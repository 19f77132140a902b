//! `tollgate rules rollback N`

use anyhow::Result;
use hyper::Method;

use crate::admin::{ConsentArgs, ConsentOutcome, ScopeArgs, changes};
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::{ChangeCounts, member};

/// The generation.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The generation to restore
    #[arg(value_name = "GENERATION")]
    generation: u64,
    /// Restore overrides, grants and switches of rules as well
    #[arg(long)]
    overrides: bool,
    /// Restore clients as well
    #[arg(long)]
    clients: bool,
    #[command(flatten)]
    consent: ConsentArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Restores the rules of one namespace as they were in a generation. A rollback is a change
itself: it creates a new generation, and can be rolled back. Overrides, switches and
clients stay unless the flags include them; the overrides of a removed rule are
removed with it. Tokens and the mode always stay. On a terminal the command shows the
changes and asks; elsewhere it needs --yes.

Examples:
  List the generations:
    tollgate rules generations
  Preview:
    tollgate rules rollback 12 --dry-run
  Roll back:
    tollgate rules rollback 12
  In a script:
    tollgate rules rollback 12 --yes
  Undo a single change:
    tollgate rules revert 17

Exit codes:
  0  done; with --dry-run: possible
  1  rejected: no such generation, or the prompt was declined
  2  wrong usage, no response, no valid token"#;

/// Rolls back.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let mut call = admin.call(Method::POST, &["v1", "generations", &args.generation.to_string(), "rollback"]);
    for (name, wanted) in [("overrides", args.overrides), ("clients", args.clients)] {
        call = call.query_some(name, wanted.then_some("true"));
    }
    let question = format!("Roll back to {}", args.generation);
    let done = args.consent.send(&mut admin, &call, &question, out)?;
    if let ConsentOutcome::Done(response) = &done {
        let (counts, now) = (ChangeCounts::of(changes(response)), member(response, "generation"));
        out.line(&format!("{counts}, as in generation {} (now generation {now})", args.generation))?;
    }
    Ok(done.exit())
}
