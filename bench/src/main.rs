//! Benchmarks: Tollgate beside its peers, in interleaved rounds, as ratios inside one run.
//!
//! Absolute times drift with the machine, so the targets are about ratios, measured round by round. One file per
//! benchmark; `--help` lists them.

mod changes;
mod cores;
mod directory;
mod engine;
mod field;
mod fill;
mod gateway;
mod growth;
mod http;
mod keys;
mod kinds;
mod limit;
mod machine;
mod memory;
mod options;
mod peers;
mod process;
mod race;
mod redis;
mod report;
mod resident;
mod rules;
mod servers;
mod statistics;
mod stopwatch;
mod store;
mod wire;
mod workload;

use std::io::Write as _;
use std::process::ExitCode;

use self::options::{Benchmark, Command, Options};
use self::report::BenchReport;

fn main() -> anyhow::Result<ExitCode> {
    match options::parse(std::env::args().skip(1))? {
        Command::Help => {
            std::io::stdout().write_all(options::HELP.as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Fill(candidate) => {
            fill::run(&candidate)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Run(options) => run(&options),
    }
}

fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let watched = machine::MachineWatch::start();
    let mut report = BenchReport::new(&options.title());
    for question in &options.questions {
        match question {
            Benchmark::Store => store::run(options, &mut report),
            Benchmark::Memory => memory::run(&mut report)?,
            Benchmark::Rules => rules::run(options, &mut report)?,
            Benchmark::Directory => directory::run(&mut report)?,
            Benchmark::Engine => engine::run(options, &mut report)?,
            Benchmark::Growth => growth::run(options, &mut report)?,
            Benchmark::Http => http::run(options, &mut report)?,
            Benchmark::Redis => redis::run(options, &mut report)?,
            Benchmark::Gateway => gateway::run(options, &mut report)?,
            Benchmark::Wire => wire::run(options, &mut report)?,
        }
    }
    let text = report.finish(&watched.describe());
    std::io::stdout().write_all(text.as_bytes())?;
    if let Some(path) = options.file() {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, &text)?;
        report::progress(&format!("written to {}", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}
