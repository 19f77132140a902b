//! `tollgate rules revert CHANGE`

use anyhow::Result;
use hyper::Method;

use crate::admin::{ConsentArgs, ConsentOutcome, EveryScopeArgs, changes};
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::{ChangeCounts, member};

/// The change.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Number of the change, as shown by `tollgate audit`
    #[arg(value_name = "CHANGE")]
    change: u64,
    #[command(flatten)]
    consent: ConsentArgs,
    #[command(flatten)]
    scope: EveryScopeArgs,
}

const HELP: &str = r#"Restores one rule, override, grant, switch or client to its state before a change; all other
changes stay. Rejected if the resource was changed again: revert the later change
first. On a terminal the command shows the change and asks; elsewhere it needs --yes.

Examples:
  List the changes:
    tollgate audit
  Revert one:
    tollgate rules revert 17

Exit codes:
  0  done; with --dry-run: possible
  1  rejected: no such change, a later change, or the prompt was declined
  2  wrong usage, no response, no valid token"#;

/// Reverts the change.
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
