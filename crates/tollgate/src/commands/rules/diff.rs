//! `tollgate rules diff`: what a file would change, or what changed between two generations.

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
    /// A rules file, to compare with what is in force; - reads standard input
    #[arg(value_name = "FILE", required_unless_present = "from", conflicts_with_all = ["from", "to"])]
    file: Option<PathBuf>,
    /// Count rules that the file does not have as differences, as `import --prune` would delete them
    #[arg(long, conflicts_with = "from")]
    prune: bool,
    /// What changed since this generation
    #[arg(long, value_name = "N")]
    from: Option<u64>,
    /// ... and up to this one [default: the present one]
    #[arg(long, value_name = "N", requires = "from")]
    to: Option<u64>,
    /// Print the API's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"`+` is new, `~` changed, `-` deleted. Changes nothing.

Examples:
  Is what is in force what is in git?
    tollgate rules diff rules.yaml --prune
  What has happened since generation 12? (see tollgate rules generations)
    tollgate rules diff --from 12
  What would a rollback from 15 to 12 do?
    tollgate rules diff --from 15 --to 12

Exit codes, as those of diff(1):
  0  no difference
  1  there are differences
  2  wrong usage, a file that cannot be read or is not valid, no answer"#;

/// Compares.
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
            return Ok(Exit::Unusable); // 1 would say that there are differences
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

/// The present generation, if there is any.
fn latest(admin: &mut AdminClient) -> Result<Option<u64>> {
    let call = admin.get(&["v1", "generations"]).query("limit", "1");
    let response = admin.send(&call)?.json()?;
    Ok(response.pointer("/generations/0/generation").and_then(Value::as_u64))
}
