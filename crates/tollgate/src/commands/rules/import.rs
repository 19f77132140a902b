//! `tollgate rules import FILE`

use std::path::PathBuf;

use anyhow::{Result, bail};
use hyper::Method;

use super::translate;
use crate::admin::{AdminClient, ScopeArgs, changes, print_warnings, show};
use crate::client::{ApiCall, ApiResponse};
use crate::exit::Exit;
use crate::input::{self, SourceText};
use crate::output::Output;
use tollgate_terminal::{ChangeCounts, changes_text, member};

/// The file, and what to do with it.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// A rules file; - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Translate the file from the format of another limiter
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: Option<translate::ImportFormat>,
    /// With --from: write the rules to this file (- for standard output); import nothing
    #[arg(long, value_name = "FILE", requires = "from")]
    out: Option<PathBuf>,
    /// With --out: replace an existing file
    #[arg(long, requires = "out")]
    force: bool,
    /// Also delete the rules that are not in the file
    #[arg(long)]
    prune: bool,
    /// Show what would change; change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Print the API's JSON; does not ask
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: ScopeArgs,
}

const HELP: &str = r#"Writes the content of the file to the database, as one generation and atomically. Rules
are identified by their names, so a second import changes nothing. On a terminal the
command shows the changes and asks; elsewhere it does not ask, but deletes nothing
without --yes.

Examples:
  tollgate rules import rules.yaml
  Preview (tollgate rules diff also reports differences by its exit code):
    tollgate rules import rules.yaml --dry-run
  From CI, with the file as the single source:
    tollgate rules import rules.yaml --prune --yes
  From another limiter (envoy-ratelimit, limitador), into a file to review first:
    tollgate rules import --from limitador limits.yaml --out rules.yaml
  Limits that cannot be translated exactly are reported as warnings, with their lines.

Exit codes:
  0  imported; with --dry-run: valid; with --out: written
  1  rejected: the file is invalid, or the prompt was declined; with --from: done, but
     some limit was omitted
  2  wrong usage, an unreadable file, no response, no valid token"#;

/// Imports the file.
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
        if !args.json {
            print_warnings(&response.json()?, out);
        }
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

/// The import call.
pub fn call(admin: &AdminClient, source: &SourceText, prune: bool, dry_run: bool) -> ApiCall {
    let mut call = admin.call(Method::POST, &["v1", "rules", "import"]);
    for (name, wanted) in [("prune", prune), ("dry_run", dry_run)] {
        if wanted {
            call = call.query(name, "true");
        }
    }
    call.yaml(source.text.clone())
}

/// Shows the changes and asks for confirmation on a terminal; elsewhere, an error if anything would be deleted.
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
            number => bail!("this would delete {number}: confirm with --yes, or preview with --dry-run"),
        };
    }
    out.text(&changes_text(changes, out.palette()))?;
    Ok(out.confirm(&format!("Go on ({counts})?")).unwrap_or(counts.deleted == 0))
}

fn imported(args: &Args, response: &ApiResponse, out: &mut Output) -> Result<()> {
    let body = response.json()?;
    if !args.json {
        print_warnings(&body, out);
    }
    match args.json {
        true => out.line(&response.text())?,
        false => {
            let counts = ChangeCounts::of(changes(&body));
            out.line(&format!("{counts} (generation {})", member(&body, "generation")))?;
        }
    }
    Ok(())
}
