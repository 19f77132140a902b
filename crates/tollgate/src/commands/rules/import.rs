//! `tollgate rules import FILE`

use std::path::PathBuf;

use anyhow::{Result, bail};
use hyper::Method;

use super::translate;
use crate::admin::{AdminClient, ScopeArgs, changes, show};
use crate::client::{ApiCall, ApiResponse};
use crate::exit::Exit;
use crate::input::{self, SourceText};
use crate::output::Output;
use crate::render::{ChangeCounts, changes_text, member};

/// Which file, and how far to go.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// A rules file; - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Translate it from the format of another limiter first
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: Option<translate::ImportFormat>,
    /// With --from: write the rules to this file, - for standard output; import nothing
    #[arg(long, value_name = "FILE", requires = "from")]
    out: Option<PathBuf>,
    /// With --out: replace the file if it is there
    #[arg(long, requires = "out")]
    force: bool,
    /// Also delete the rules that the file does not have
    #[arg(long)]
    prune: bool,
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

const HELP: &str = r#"Brings the database to what the file says: all of it as one generation, or none of
it. Rules are known by their names, so importing twice changes nothing the second
time. On a terminal it shows the changes and asks; elsewhere it just does it, but
deletes nothing without --yes.

Examples:
  tollgate rules import rules.yaml
  What would that change? (exit code 1 if anything: tollgate rules diff)
    tollgate rules import rules.yaml --dry-run
  From CI, with the file as the only truth:
    tollgate rules import rules.yaml --prune --yes
  From another limiter (envoy-ratelimit, limitador), as a file to look at first:
    tollgate rules import --from limitador limits.yaml --out rules.yaml
  What rules cannot say as it did is told as warnings, each with its line.

Exit codes:
  0  imported; with --dry-run: it could be; with --out: written
  1  refused: the file is not valid, or you said no; with --from: done, but some
     limit was left out
  2  wrong usage, a file that cannot be read, no answer, no valid token"#;

/// Imports it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut source = input::read(&args.file)?;
    let (mut namespace, mut done) = (None, Exit::Ok);
    if let Some(from) = args.from {
        let meant = translate::rules_from(from, &source, args.scope.namespace(), out)?;
        done = Exit::from_success(meant.is_whole);
        if let Some(path) = &args.out {
            translate::write(path, &meant.rules, args.force, out)?;
            return Ok(done);
        }
        (source, namespace) = (meant.rules, Some(meant.namespace));
    }
    let mut admin = args.scope.admin_of(namespace)?;
    let label = format!("importing {}", source.name);
    if args.dry_run {
        let response = admin.send_long(&call(&admin, &source, args.prune, true), &label, out)?;
        show(&response, args.json, crate::admin::DRY_RUN, out)?;
        return Ok(done);
    }
    if !args.yes && !agreed(args, &mut admin, &source, out)? {
        return Ok(Exit::No);
    }
    let response = admin.send_long(&call(&admin, &source, args.prune, false), &label, out)?;
    imported(args, &response, out)?;
    Ok(done)
}

/// An import, as a dry run or not.
pub fn call(admin: &AdminClient, source: &SourceText, prune: bool, dry_run: bool) -> ApiCall {
    let mut call = admin.call(Method::POST, &["v1", "rules", "import"]);
    for (name, wanted) in [("prune", prune), ("dry_run", dry_run)] {
        if wanted {
            call = call.query(name, "true");
        }
    }
    call.yaml(source.text.clone())
}

/// Shows a person what would change, and asks. Where there is nobody to ask, nothing may be deleted.
fn agreed(args: &Args, admin: &mut AdminClient, source: &SourceText, out: &mut Output) -> Result<bool> {
    let asks = !args.json && out.is_terminal() && !input::is_stdin(&args.file);
    if !asks && !args.prune {
        return Ok(true);
    }
    let response = admin.send_long(&call(admin, source, args.prune, true), "comparing", out)?.json()?;
    let changes = changes(&response);
    let counts = ChangeCounts::of(changes);
    if counts.is_empty() {
        return Ok(true);
    }
    if !asks {
        return match counts.deleted {
            0 => Ok(true),
            number => bail!("this would delete {number}: add --yes to mean it, or --dry-run to look"),
        };
    }
    out.text(&changes_text(changes, out.palette()))?;
    Ok(out.confirm(&format!("Go on ({counts})?")).unwrap_or(counts.deleted == 0))
}

fn imported(args: &Args, response: &ApiResponse, out: &mut Output) -> Result<()> {
    let body = response.json()?;
    match args.json {
        true => out.line(&response.text())?,
        false => {
            let counts = ChangeCounts::of(changes(&body));
            out.line(&format!("{counts} (generation {})", member(&body, "generation")))?;
        }
    }
    Ok(())
}
