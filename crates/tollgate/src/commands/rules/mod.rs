//! `tollgate rules ...`: everything about rules files.

pub mod explain;
pub mod fmt;
pub mod lint;
pub mod test;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// What to do with rules files.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Report everything that is wrong with rules files
    Lint(lint::Args),
    /// Tell of every rule whether it applies to a request, and why
    Explain(Box<explain::Args>),
    /// Run tables of requests, times and expected decisions
    Test(test::Args),
    /// Lay out rules files in one way
    Fmt(fmt::Args),
}

/// Runs one of them.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::Lint(args) => lint::run(args, out),
        Command::Explain(args) => explain::run(args, out),
        Command::Test(args) => test::run(args, out),
        Command::Fmt(args) => fmt::run(args, out),
    }
}
