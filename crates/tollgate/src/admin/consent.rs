//! Confirmation of calls that undo changes: a prompt on a terminal, `--yes` elsewhere.

use anyhow::{Result, bail};
use serde_json::Value;

use super::admin_client::AdminClient;
use super::change::{DRY_RUN, changes, show};
use crate::client::ApiCall;
use crate::exit::Exit;
use crate::output::Output;
use tollgate_terminal::{ChangeCounts, changes_text};

/// Flags of commands that need a confirmation.
#[derive(Clone, Debug, clap::Args)]
pub struct ConsentArgs {
    /// Show what would change; change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation; required in scripts
    #[arg(long)]
    yes: bool,
    /// Print the API's JSON; does not ask, so it needs --yes or --dry-run
    #[arg(long)]
    json: bool,
}

/// The result of a call that needed a confirmation.
pub enum ConsentOutcome {
    /// The call succeeded; this is the body, which is not printed yet.
    Done(Value),
    /// The output is printed.
    Printed,
    /// The prompt was declined.
    Declined,
}

impl ConsentOutcome {
    /// The exit code of the command.
    pub fn exit(&self) -> Exit {
        match self {
            ConsentOutcome::Done(_) | ConsentOutcome::Printed => Exit::Ok,
            ConsentOutcome::Declined => Exit::No,
        }
    }
}

impl ConsentArgs {
    /// Sends a call, after the confirmation.
    pub fn send(
        &self,
        admin: &mut AdminClient,
        call: &ApiCall,
        question: &str,
        out: &mut Output,
    ) -> Result<ConsentOutcome> {
        let tried = call.clone().query("dry_run", "true");
        if self.dry_run {
            let response = admin.send_long(&tried, "comparing", out)?;
            show(&response, self.json, DRY_RUN, out)?;
            return Ok(ConsentOutcome::Printed);
        }
        if !self.yes {
            let asks = !self.json && out.is_terminal();
            let response = if asks { admin.send_long(&tried, "comparing", out)?.json()? } else { Value::Null };
            let counts = ChangeCounts::of(changes(&response));
            if asks {
                out.text(&changes_text(changes(&response), out.palette()))?;
            }
            match asks.then(|| out.confirm(&format!("{question} ({counts})?"))).flatten() {
                Some(true) => {}
                Some(false) => return Ok(ConsentOutcome::Declined),
                None => bail!("nothing was changed: confirm with --yes, or preview with --dry-run"),
            }
        }
        let response = admin.send_long(call, "working", out)?;
        if self.json {
            out.line(&response.text())?;
            return Ok(ConsentOutcome::Printed);
        }
        Ok(ConsentOutcome::Done(response.json()?))
    }
}
