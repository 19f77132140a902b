//! `tollgate rules revert CHANGE`

use anyhow::Result;
use hyper::Method;

use crate::admin::{ConsentArgs, ConsentOutcome, EveryScopeArgs, changes};
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{ChangeCounts, member};

/// Which change.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Its number in `tollgate audit`
    #[arg(value_name = "CHANGE")]
    change: u64,
    #[command(flatten)]
    consent: ConsentArgs,
    #[command(flatten)]
    scope: EveryScopeArgs,
}

const HELP: &str = r#"Puts one rule, override, switch or client back to what it was before one change; all
other changes stay. Refused if the same thing was changed again since: revert that
change first. On a terminal it shows the change and asks; elsewhere it wants --yes.

Examples:
  Which changes are there?
    tollgate audit
  Revert one of them:
    tollgate rules revert 17

Exit codes:
  0  done; with --dry-run: it could be
  1  refused: there is no such change, it was changed since, or you said no
  2  wrong usage, no answer, no valid token"#;

/// Reverts it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let call = admin.call(Method::POST, &["v1", "audit", &args.change.to_string(), "revert"]);
    let done = args.consent.send(&mut admin, &call, &format!("Revert change {}", args.change), out)?;
    if let ConsentOutcome::Done(response) = &done {
        let (counts, now) = (ChangeCounts::of(changes(response)), member(response, "generation"));
        out.line(&format!("{counts}, as before change {} (now generation {now})", args.change))?;
    }
    Ok(done.exit())
}
