//! Runs vector files: `cargo run -p tollgate-testkit --bin vectors -- FILE...`

use std::io::{self, Write};
use std::process::ExitCode;

use tollgate_testkit::SubjectKind;
use tollgate_testkit::redis::RedisClient;
use tollgate_testkit::vectors::{self, VectorFile, VectorReport};

const HELP: &str = "\
Runs test vectors of rate-limiting algorithms and compares every expected field.

usage: vectors [--store URL] FILE...

  --store URL   what the vectors run on: memory (default), reference, redis://127.0.0.1:PORT
  --help        this text

Prints the first differences, at most ten, and ends with `N passed, M failed`, counted in steps.
Exit code: 0 if all passed, 1 if any failed, 2 if a file cannot be read or an argument is wrong.
";

/// Differences shown before the rest is only counted.
const SHOWN_MAX: usize = 10;

fn main() -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let mut err = io::stderr().lock();
    match Arguments::parse(std::env::args().skip(1)) {
        Ok(None) => {
            write!(out, "{HELP}")?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(Some(arguments)) => run(&arguments, &mut out, &mut err),
        Err(problem) => {
            writeln!(err, "vectors: {problem}\n\n{HELP}")?;
            Ok(ExitCode::from(2))
        }
    }
}

struct Arguments {
    store: SubjectKind,
    files: Vec<String>,
}

impl Arguments {
    /// `None` if help is wanted.
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
        let mut arguments = Arguments { store: SubjectKind::DEFAULT, files: Vec::new() };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--store" => arguments.store = store(&words.next().ok_or("--store needs a URL")?)?,
                flag if flag.starts_with("--store=") => {
                    arguments.store = store(flag.trim_start_matches("--store="))?;
                }
                flag if flag.starts_with('-') => return Err(format!("unknown option {flag}")),
                _ => arguments.files.push(word),
            }
        }
        match arguments.files.is_empty() {
            true => Err("no file given".to_owned()),
            false => Ok(Some(arguments)),
        }
    }
}

/// The subject of a URL; a Redis server must accept a connection.
fn store(url: &str) -> Result<SubjectKind, String> {
    let store = SubjectKind::from_url(url).map_err(|unknown| unknown.to_string())?;
    if let SubjectKind::Redis(port) = store {
        RedisClient::connect(port).map_err(|error| format!("{url}: {error}"))?;
    }
    Ok(store)
}

fn run(arguments: &Arguments, out: &mut impl Write, err: &mut impl Write) -> io::Result<ExitCode> {
    let (mut passed, mut failed, mut shown, mut unreadable) = (0, 0, 0, false);
    for path in &arguments.files {
        match report(path, arguments.store) {
            Ok(report) => {
                passed += report.passed;
                failed += report.failed;
                for difference in report.differences.iter().take(SHOWN_MAX - shown) {
                    writeln!(out, "{path}: {difference}")?;
                    shown += 1;
                }
            }
            Err(problem) => {
                writeln!(err, "{path}: {problem}")?;
                unreadable = true;
            }
        }
    }
    writeln!(out, "{passed} passed, {failed} failed")?;
    Ok(match (unreadable, failed) {
        (true, _) => ExitCode::from(2),
        (false, 0) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn report(path: &str, store: SubjectKind) -> Result<VectorReport, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let file = VectorFile::parse(&text).map_err(|error| error.to_string())?;
    Ok(vectors::run(&file, || store.open()))
}
