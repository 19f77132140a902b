//! `tollgate rules rollback N`

use anyhow::Result;
use hyper::Method;

use crate::admin::{Admin, ScopeArgs, changes, show};
use crate::client::{Answer, Call};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{Tally, changes_text, member};

/// Where to.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The generation to go back to
    #[arg(value_name = "GENERATION")]
    generation: u64,
    /// Show what would change; change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print the API's JSON; asks nothing
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Brings back the rules, overrides and clients as they were in a generation. That is
a change like any other: it makes a new generation, and can be rolled back itself.
Tokens and the mode stay as they are. On a terminal it shows the changes and asks.

Examples:
  Which generations are there?
    tollgate rules generations
  What would change?
    tollgate rules rollback 12 --dry-run
  Do it:
    tollgate rules rollback 12

Exit codes:
  0  done; with --dry-run: it could be
  1  refused: there is no such generation, or you said no
  2  wrong usage, no answer, no valid token"#;

/// Goes back.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = call(&admin, args.generation);
    if args.dry_run {
        let answer = admin.send_long(&call.query("dry_run", "true"), "comparing", out)?;
        show(&answer, args.json, crate::admin::DRY_RUN, out)?;
        return Ok(Exit::Ok);
    }
    if !args.yes && !args.json && out.is_terminal() {
        let answer = admin.send_long(&call.clone().query("dry_run", "true"), "comparing", out)?.json()?;
        let tally = Tally::of(changes(&answer));
        out.text(&changes_text(changes(&answer), out.palette()))?;
        if !tally.is_empty() && out.confirm(&format!("Go back to {} ({tally})?", args.generation)) == Some(false) {
            return Ok(Exit::No);
        }
    }
    let answer = admin.send_long(&call, "rolling back", out)?;
    rolled_back(args, &answer, out)?;
    Ok(Exit::Ok)
}

fn call(admin: &Admin, generation: u64) -> Call {
    admin.call(Method::POST, &["v1", "generations", &generation.to_string(), "rollback"])
}

fn rolled_back(args: &Args, answer: &Answer, out: &mut Output) -> Result<()> {
    let told = answer.json()?;
    match args.json {
        true => out.line(&answer.text())?,
        false => {
            let tally = Tally::of(changes(&told));
            let (back, now) = (args.generation, member(&told, "generation"));
            out.line(&format!("{tally}, as in generation {back} (now generation {now})"))?;
        }
    }
    Ok(())
}
