//! Runs rows of the fault matrix: `cargo run -p tollgate-lab --bin faults -- --tollgate PATH [ROW...]`

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tollgate_lab::faults::{self, FaultRow, ROWS, RowResult, Speed};

const HELP: &str = "\
Does to a fleet of real processes what the fault matrix lists, and checks what was admitted meanwhile.

usage: faults --tollgate PATH [--results FILE] [--list] [--fast] [ROW...]

  --tollgate PATH  the binary to test
  --results FILE   append the table to this file, too
  --list           list the rows
  --fast           only the rows that every change runs
  --help           this text

A row is named as in the matrix: F1, F14; without any, all of them run, one after the other.
Exit code: 0 if all promises held, 1 if any was broken, 2 if an argument is wrong.
";

fn main() -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    match Arguments::parse(std::env::args().skip(1)) {
        Ok(Arguments { help: true, .. }) => write!(out, "{HELP}").map(|()| ExitCode::SUCCESS),
        Ok(Arguments { list: true, rows, .. }) => {
            for row in rows {
                let speed = if row.speed == Speed::Fast { "fast" } else { "slow" };
                writeln!(out, "{:12} {speed}  {}", row.id, row.title)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Ok(arguments) => run(&arguments, &mut out),
        Err(problem) => {
            writeln!(io::stderr(), "faults: {problem}\n\n{HELP}")?;
            Ok(ExitCode::from(2))
        }
    }
}

#[derive(Default)]
struct Arguments {
    tollgate: PathBuf,
    results: Option<PathBuf>,
    rows: Vec<&'static FaultRow>,
    list: bool,
    help: bool,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let (mut arguments, mut fast) = (Arguments::default(), false);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--tollgate" => arguments.tollgate = value()?.into(),
                "--results" => arguments.results = Some(value()?.into()),
                "--list" => arguments.list = true,
                "--fast" => fast = true,
                "--help" | "-h" => arguments.help = true,
                name => arguments.rows.push(faults::find(name).ok_or(format!("no row {name}; --list lists them"))?),
            }
        }
        if arguments.rows.is_empty() {
            arguments.rows = ROWS.iter().filter(|row| !fast || row.speed == Speed::Fast).collect();
        }
        let is_enough = arguments.list || arguments.help || arguments.tollgate.is_file();
        if is_enough { Ok(arguments) } else { Err("--tollgate names no file".to_owned()) }
    }
}

/// What stopped a row half way: the others are run all the same.
fn panicked(panic: &(dyn std::any::Any + Send)) -> RowResult {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    RowResult { broken: vec![text.unwrap_or("it panicked").to_owned()], ..RowResult::default() }
}

fn run(arguments: &Arguments, out: &mut impl Write) -> io::Result<ExitCode> {
    let mut results: Vec<(&FaultRow, RowResult, Duration)> = Vec::new();
    for row in &arguments.rows {
        write!(out, "{:12} {} ... ", row.id, row.title)?;
        out.flush()?;
        let ran = std::panic::catch_unwind(|| faults::run(row, &arguments.tollgate));
        let (outcome, took) = ran.unwrap_or_else(|panic| (panicked(&*panic), Duration::ZERO));
        let verdict = if outcome.held() { "held" } else { "BROKEN" };
        writeln!(out, "{verdict} ({} of {}, {:.1} s)", outcome.admitted, outcome.bound, took.as_secs_f64())?;
        outcome.broken.iter().try_for_each(|broken| writeln!(out, "{:12} {broken}", ""))?;
        results.push((row, outcome, took));
    }
    let table = faults::table(&results);
    writeln!(out, "\n{table}")?;
    if let Some(path) = &arguments.results {
        let mut file = std::fs::File::options().create(true).append(true).open(path)?;
        write!(file, "{table}")?;
    }
    let broken = results.iter().filter(|(_, outcome, _)| !outcome.held()).count();
    let decisions: u64 = results.iter().map(|(_, outcome, _)| outcome.decisions).sum();
    writeln!(out, "{} rows, {decisions} decisions checked, {broken} broken", results.len())?;
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
