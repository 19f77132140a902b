//! Calls that undo the work of others: shown and asked about on a terminal, and meant by `--yes` elsewhere.

use anyhow::{Result, bail};
use serde_json::Value;

use super::admin_client::AdminClient;
use super::change::{DRY_RUN, changes, show};
use crate::client::ApiCall;
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{ChangeCounts, changes_text};

/// Whether it is meant, and how it is told.
#[derive(Clone, Debug, clap::Args)]
pub struct ConsentArgs {
    /// Show what would change; change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask; scripts have to say so
    #[arg(long)]
    yes: bool,
    /// Print the API's JSON; asks nothing, so it needs --yes or --dry-run
    #[arg(long)]
    json: bool,
}

/// What came of it.
pub enum ConsentOutcome {
    /// It was done; the answer is still to be told.
    Done(Value),
    /// All is said.
    Printed,
    /// A person said no.
    Declined,
}

impl ConsentOutcome {
    /// How the command ends.
    pub fn exit(&self) -> Exit {
        match self {
            ConsentOutcome::Done(_) | ConsentOutcome::Printed => Exit::Ok,
            ConsentOutcome::Declined => Exit::No,
        }
    }
}

impl ConsentArgs {
    /// Sends a call, if it is meant.
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
                None => bail!("nothing was changed: say --yes to mean it, or --dry-run to look"),
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
