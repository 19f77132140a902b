//! `tollgate clients import FILE.csv`

use std::path::PathBuf;

use anyhow::{Context, Result};
use hyper::Method;
use serde_json::{Value, json};

use super::csv;
use crate::admin::{ChangeArgs, DRY_RUN, ScopeArgs, changes};
use crate::exit::Exit;
use crate::input;
use crate::output::Output;
use tollgate_terminal::ChangeCounts;

/// Clients per call: a short transaction, and far below the server's body limit.
const BATCH: usize = 5000;

/// The file.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// A CSV file; - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"The first line names the columns: client_key, tier, org; every other column is an
attribute of that name. Existing clients are updated, new ones are created, none is
deleted. Clients are written in batches of 5000, one generation each; if a batch is
rejected, earlier batches stay, and importing again is safe.

Examples:
  tollgate clients import accounts.csv --dry-run
  psql -c "COPY (SELECT 'key:' || api_key AS client_key, plan AS tier
    FROM accounts) TO STDOUT CSV HEADER" limits | tollgate clients import -

Exit codes:
  0  imported; with --dry-run: valid
  1  rejected: the file has invalid values
  2  wrong usage, an unreadable file, no response, no valid token"#;

/// Imports the clients in batches.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let source = input::read(&args.file)?;
    let clients = csv::clients(&source.text).with_context(|| format!("cannot read {}", source.name))?;
    let mut admin = args.scope.admin()?;
    let mut total = ChangeCounts::default();
    for (number, batch) in clients.chunks(BATCH).enumerate() {
        let call = args.change.call(admin.call(Method::POST, &["v1", "rules", "import"]));
        // JSON is valid YAML.
        let call = call.yaml(json!({ "clients": batch }).to_string());
        let done = format!("importing clients, {} of {}", number * BATCH, clients.len());
        let response = admin.send_long(&call, &done, out)?;
        total = total + ChangeCounts::of(changes(&response.json()?));
    }
    let summary = json!({ "clients": clients.len(), "created": total.created, "changed": total.changed, "dry_run": args.change.dry_run });
    match args.change.json {
        true => out.line(&Value::to_string(&summary))?,
        false => {
            let last = if args.change.dry_run { DRY_RUN } else { "" };
            out.line(&format!("{} clients: {total}{last}", clients.len()))?;
        }
    }
    Ok(Exit::Ok)
}
