//! `tollgate rules lint FILE...`

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;
use tollgate_rules::Report;

use crate::exit::Exit;
use crate::output::Output;
use crate::render::{colour_report, count, problem_json, visible};
use crate::{input, load};

/// Which files, and how strictly.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Rules files; - reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Treat warnings as problems
    #[arg(long)]
    deny_warnings: bool,
    /// Print a list of {file, line, column, severity, code, field, message, help}
    #[arg(long)]
    json: bool,
}

const HELP: &str = r#"Reports all problems of all files at once. Errors keep a file from being used; warnings say that it
works, and probably not as meant. Codes are stable.

Examples:
  tollgate rules lint rules.yaml
  tollgate rules lint --deny-warnings rules/*.yaml
  git show HEAD:rules.yaml | tollgate rules lint --json -

Exit codes:
  0  no errors (with --deny-warnings: no warnings either)
  1  problems found
  2  wrong usage, or a file that cannot be read"#;

/// Checks the files one after the other; one that cannot be read does not keep the others from it.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let mut exit = Exit::Ok;
    let mut list: Vec<Value> = Vec::new();
    for path in &args.files {
        let report = match lint(path) {
            Ok(Linted::Fine { name, rules }) => {
                if !args.json {
                    out.line(&format!("{}: {}, {}", visible(&name), out.palette().good("ok"), count(rules, "rule")))?;
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
    Fine { name: String, rules: usize },
    Problems(Report),
}

fn lint(path: &Path) -> Result<Linted> {
    let source = match input::read(path) {
        Ok(source) => source,
        Err(error) => return error.downcast().map(Linted::Problems),
    };
    Ok(match load::from_source(&source) {
        Ok(loaded) => Linted::Fine { name: source.name, rules: loaded.file.rules.len() },
        Err(report) => Linted::Problems(report),
    })
}
