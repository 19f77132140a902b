//! Calls that undo the work of others: shown and asked about on a terminal, and meant by `--yes` elsewhere.

use anyhow::{Result, bail};
use serde_json::Value;

use super::admin_client::Admin;
use super::change::{DRY_RUN, changes, show};
use crate::client::Call;
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{Tally, changes_text};

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
pub enum Agreed {
    /// It was done; the answer is still to be told.
    Done(Value),
    /// All is said.
    Told,
    /// A person said no.
    No,
}

impl Agreed {
    /// How the command ends.
    pub fn exit(&self) -> Exit {
        match self {
            Agreed::Done(_) | Agreed::Told => Exit::Ok,
            Agreed::No => Exit::No,
        }
    }
}

impl ConsentArgs {
    /// Sends a call, if it is meant.
    pub fn send(&self, admin: &mut Admin, call: &Call, question: &str, out: &mut Output) -> Result<Agreed> {
        let tried = call.clone().query("dry_run", "true");
        if self.dry_run {
            let answer = admin.send_long(&tried, "comparing", out)?;
            show(&answer, self.json, DRY_RUN, out)?;
            return Ok(Agreed::Told);
        }
        if !self.yes {
            let asks = !self.json && out.is_terminal();
            let answer = if asks { admin.send_long(&tried, "comparing", out)?.json()? } else { Value::Null };
            let tally = Tally::of(changes(&answer));
            if asks {
                out.text(&changes_text(changes(&answer), out.palette()))?;
            }
            match asks.then(|| out.confirm(&format!("{question} ({tally})?"))).flatten() {
                Some(true) => {}
                Some(false) => return Ok(Agreed::No),
                None => bail!("nothing was changed: say --yes to mean it, or --dry-run to look"),
            }
        }
        let answer = admin.send_long(call, "working", out)?;
        if self.json {
            out.line(&answer.text())?;
            return Ok(Agreed::Told);
        }
        Ok(Agreed::Done(answer.json()?))
    }
}
