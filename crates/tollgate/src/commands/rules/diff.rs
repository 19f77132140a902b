//! `tollgate rules diff`: compares a file with the database, or two generations.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde_json::Value;

use super::import;
use crate::admin::{AdminClient, ScopeArgs, changes, show};
use crate::client::ApiResponse;
use crate::exit::Exit;
use crate::input;
use crate::output::Output;

/// What to compare.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// A rules file to compare with the database; - reads standard input
    #[arg(value_name = "FILE", required_unless_present = "from", conflicts_with_all = ["from", "to"])]
    file: Option<PathBuf>,
    /// Include rules that are not in the file, which `import --prune` would delete
    #[arg(long, conflicts_with = "from")]
    prune: bool,
    /// Changes since this generation
    #[arg(long, value_name = "N")]
    from: Option<u64>,
    /// Changes up to this generation [default: the current one]
    #[arg(long, value_name = "N", requires = "from")]
    to: Option<u64>,
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"`+` is created, `~` changed, `-` deleted. Changes nothing.

Examples:
  Compare the database with a file in git:
    tollgate rules diff rules.yaml --prune
  Changes since generation 12 (see tollgate rules generations):
    tollgate rules diff --from 12
  Preview a rollback from 15 to 12:
    tollgate rules diff --from 15 --to 12

Exit codes, as of diff(1):
  0  no difference
  1  there are differences
  2  wrong usage, an unreadable or invalid file, no response"#;

/// Prints the differences.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut admin = args.scope.admin()?;
    let compared = match (&args.file, args.from) {
        (Some(file), _) => with_file(args, file, &mut admin, out),
        (None, Some(from)) => between(from, args.to, &mut admin),
        (None, None) => bail!("name a file, or a generation with --from"),
    };
    let response = match compared {
        Ok(response) => response,
        Err(error) => {
            out.error(&error);
            return Ok(Exit::Unusable); // 1 would mean that there are differences
        }
    };
    let same = changes(&response.json()?).is_empty();
    match same && !args.json {
        true => out.line("no difference")?,
        false => {
            show(&response, args.json, "", out)?;
        }
    }
    Ok(Exit::from_success(same))
}

fn with_file(args: &Args, file: &Path, admin: &mut AdminClient, out: &mut Output) -> Result<ApiResponse> {
    let source = input::read(file)?;
    admin.send_long(&import::call(admin, &source, args.prune, true), "comparing", out)
}

fn between(from: u64, to: Option<u64>, admin: &mut AdminClient) -> Result<ApiResponse> {
    let to = match to {
        Some(to) => to,
        None => latest(admin)?.unwrap_or(from),
    };
    let call = admin.get(&["v1", "generations", "diff"]).query("from", &from.to_string());
    admin.send(&call.query("to", &to.to_string()))
}

/// The current generation, if there is one.
fn latest(admin: &mut AdminClient) -> Result<Option<u64>> {
    let call = admin.get(&["v1", "generations"]).query("limit", "1");
    let response = admin.send(&call)?.json()?;
    Ok(response.pointer("/generations/0/generation").and_then(Value::as_u64))
}
