//! `tollgate rules rollback N`

use anyhow::Result;
use hyper::Method;

use crate::admin::{ConsentArgs, ConsentOutcome, ScopeArgs, changes};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{ChangeCounts, member};

/// Where to.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The generation to go back to
    #[arg(value_name = "GENERATION")]
    generation: u64,
    /// Bring back overrides and switches of rules as well
    #[arg(long)]
    overrides: bool,
    /// Bring back clients as well
    #[arg(long)]
    clients: bool,
    #[command(flatten)]
    consent: ConsentArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Brings back the rules of one namespace as they were in a generation. That is a change
like any other: it makes a new generation, and can be rolled back itself. Overrides,
switches and clients stay as they are unless asked for; the overrides of a rule that
goes go with it. Tokens and the mode always stay. On a terminal it shows the changes
and asks; elsewhere it wants --yes.

Examples:
  Which generations are there?
    tollgate rules generations
  What would change?
    tollgate rules rollback 12 --dry-run
  Do it:
    tollgate rules rollback 12
  In a script:
    tollgate rules rollback 12 --yes
  Only one change, whatever came after it:
    tollgate rules revert 17

Exit codes:
  0  done; with --dry-run: it could be
  1  refused: there is no such generation, or you said no
  2  wrong usage, no answer, no valid token"#;

/// Goes back.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let mut call = admin.call(Method::POST, &["v1", "generations", &args.generation.to_string(), "rollback"]);
    for (name, wanted) in [("overrides", args.overrides), ("clients", args.clients)] {
        call = call.query_some(name, wanted.then_some("true"));
    }
    let question = format!("Go back to {}", args.generation);
    let done = args.consent.send(&mut admin, &call, &question, out)?;
    if let ConsentOutcome::Done(response) = &done {
        let (counts, now) = (ChangeCounts::of(changes(response)), member(response, "generation"));
        out.line(&format!("{counts}, as in generation {} (now generation {now})", args.generation))?;
    }
    Ok(done.exit())
}
