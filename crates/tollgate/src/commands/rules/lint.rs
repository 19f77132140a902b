//! `tollgate rules lint FILE...`

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;
use tollgate_rules::Report;

use crate::exit::Exit;
use crate::load::{self, LoadedRules};
use crate::output::Output;
use crate::{input, suite};
use tollgate_terminal::{colour_report, count, problem_json, visible};

/// The files, and how strict to be.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Rules files or test tables; - reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Treat warnings as problems
    #[arg(long)]
    deny_warnings: bool,
    /// Print a list of {file, line, column, severity, code, field, message, help}
    #[arg(long)]
    json: bool,
}

const HELP: &str = r#"Reports all problems of all files at once. A file with errors cannot be used; a
warning means that the file works, but probably not as intended. Codes are stable.

Examples:
  tollgate rules lint rules.yaml
  tollgate rules lint --deny-warnings rules/*.yaml
  git show HEAD:rules.yaml | tollgate rules lint --json -

Exit codes:
  0  no errors (with --deny-warnings: no warnings either)
  1  problems found
  2  wrong usage, or an unreadable file"#;

/// Checks the files; an unreadable one does not affect the others.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut exit = Exit::Ok;
    let mut list: Vec<Value> = Vec::new();
    for path in &args.files {
        let report = match lint(path) {
            Ok(Linted::Fine { name, holds }) => {
                if !args.json {
                    out.line(&format!("{}: {}, {holds}", visible(&name), out.palette().good("ok")))?;
                }
                continue;
            }
            Ok(Linted::Problems(report)) => report,
            Err(error) => {
                out.error(&error);
                exit = Exit::Unusable;
                continue;
            }
        };
        exit = exit.max(Exit::from_success(!report.is_fatal() && !args.deny_warnings));
        match args.json {
            true => list.extend(report.problems.iter().map(|problem| problem_json(&report.file, problem))),
            false => out.text(&colour_report(&report, out.palette()))?,
        }
    }
    if args.json {
        out.json(&Value::Array(list))?;
    }
    Ok(exit)
}

enum Linted {
    /// No problems; `holds` summarises the content.
    Fine {
        name: String,
        holds: String,
    },
    Problems(Report),
}

fn lint(path: &Path) -> Result<Linted> {
    look(path).or_else(|error| error.downcast().map(Linted::Problems))
}

fn look(path: &Path) -> Result<Linted> {
    let source = input::read(path)?;
    if suite::is_table(&source.text) {
        let holds = count(suite::read(path, &source)?.steps(), "step");
        return Ok(Linted::Fine { name: source.name, holds });
    }
    let LoadedRules { file, .. } = load::from_source(&source)?;
    let warnings = tollgate_rules::lint_text(&file, &source.text);
    Ok(match warnings.is_empty() {
        true => Linted::Fine { name: source.name, holds: count(file.rules.len(), "rule") },
        false => Linted::Problems(Report::new(&source.name, &source.text, warnings)),
    })
}
