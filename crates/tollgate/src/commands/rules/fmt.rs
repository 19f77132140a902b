//! `tollgate rules fmt FILE...`

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::input::{self, SourceText};
use crate::output::Output;
use crate::replace::replace;
use crate::{load, suite};
use tollgate_terminal::visible;

/// The files, and what to do with the result.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Rules files [default: -, standard input]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only list the files that are not formatted
    #[arg(long, conflicts_with = "write")]
    check: bool,
    /// Replace the files
    #[arg(long)]
    write: bool,
    /// Print a list of {file, changed}, without --check and --write also the text
    #[arg(long)]
    json: bool,
}

const HELP: &str = r#"One format: two spaces, fields in a fixed order, short maps on one line. Comments stay
with their fields. Only the layout changes, never the meaning. Files with errors and
test tables are not changed.

Examples:
  tollgate rules fmt rules.yaml                 print the result
  tollgate rules fmt --write rules/*.yaml       replace the files
  tollgate rules fmt --check rules/*.yaml       for CI
  tollgate rules fmt < old.yaml > new.yaml

Exit codes:
  0  done; with --check: all files are formatted
  1  with --check: some files are not formatted
  2  wrong usage, or a file that is unreadable or has errors"#;

/// Formats the files; an error in one does not affect the others.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    let stdin = [PathBuf::from("-")];
    let files = if args.files.is_empty() { &stdin[..] } else { &args.files };
    if !args.check && !args.write && files.len() > 1 {
        bail!("several files: add --write to replace them, or --check to compare them");
    }
    if args.write && files.iter().any(|path| input::is_stdin(path)) {
        bail!("standard input cannot be replaced: leave --write out");
    }
    let mut exit = Exit::Ok;
    let mut list: Vec<Value> = Vec::new();
    for path in files {
        let done = args.one(path, &mut list, out).unwrap_or_else(|error| {
            out.error(&error);
            Exit::Unusable
        });
        exit = exit.max(done);
    }
    if args.json {
        out.json(&Value::Array(list))?;
    }
    Ok(exit)
}

impl Args {
    fn one(&self, path: &Path, list: &mut Vec<Value>, out: &mut Output) -> Result<Exit> {
        let (source, text) = format(path)?;
        let changed = source.text != text;
        if self.write && changed {
            replace(path, text.as_bytes())?;
        }
        match self.json {
            true => list.push(self.entry(&source, &text)),
            false => self.print(&source, &text, out)?,
        }
        Ok(Exit::from_success(!(self.check && changed)))
    }

    fn entry(&self, source: &SourceText, text: &str) -> Value {
        let changed = source.text != text;
        match self.check || self.write {
            true => json!({ "file": source.name, "changed": changed }),
            false => json!({ "file": source.name, "changed": changed, "text": text }),
        }
    }

    fn print(&self, source: &SourceText, text: &str, out: &mut Output) -> Result<()> {
        let changed = source.text != text;
        match (self.check, self.write) {
            (true, _) if changed => out.line(&format!("{}: not formatted", visible(&source.name)))?,
            (_, true) if changed => out.line(&format!("{}: formatted", visible(&source.name)))?,
            (false, false) => out.text(text)?,
            _ => {}
        }
        Ok(())
    }
}

/// The file as it is, and its formatted text. A file with errors is an error: a formatter must not guess.
fn format(path: &Path) -> Result<(SourceText, String)> {
    let source = input::read(path)?;
    if suite::is_table(&source.text) {
        suite::read(path, &source)?;
        let text = source.text.clone(); // steps keep the layout of their author, often one line
        return Ok((source, text));
    }
    load::from_source(&source)?;
    let text = tollgate_rules::format(&source.name, &source.text)?;
    let result = SourceText { name: source.name.clone(), text };
    load::from_source(&result)?;
    Ok((source, result.text))
}
