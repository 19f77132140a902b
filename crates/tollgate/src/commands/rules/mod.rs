//! `tollgate rules ...`: rules in files and on a server.

pub mod create;
pub mod delete;
pub mod diff;
pub mod explain;
pub mod export;
mod fields;
pub mod fmt;
pub mod generations;
pub mod get;
pub mod import;
pub mod lint;
pub mod list;
pub mod mode;
pub mod refresh;
pub mod revert;
pub mod rollback;
pub mod test;
mod translate;
pub mod update;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// The rule commands: first those for files, then those of a server.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Report all problems of rules files
    Lint(lint::Args),
    /// Explain how each rule of a file evaluates a request
    Explain(Box<explain::Args>),
    /// Run test tables: requests, times and expected decisions
    Test(test::Args),
    /// Format rules files
    Fmt(fmt::Args),
    /// List the rules of a server
    List(Box<list::Args>),
    /// Show a rule of a server, as YAML
    #[command(visible_alias = "show")]
    Get(Box<get::Args>),
    /// Create a rule, from flags or a file
    Create(Box<create::Args>),
    /// Update a rule
    Update(Box<update::Args>),
    /// Delete a rule
    Delete(Box<delete::Args>),
    /// Export rules, clients and overrides as a rules file
    Export(Box<export::Args>),
    /// Import a rules file into the database of a server
    Import(Box<import::Args>),
    /// Compare a file with the database, or two generations
    Diff(Box<diff::Args>),
    /// List the generations: time, author and number of changes
    Generations(Box<generations::Args>),
    /// Roll back to a generation
    Rollback(Box<rollback::Args>),
    /// Revert one change
    Revert(Box<revert::Args>),
    /// Switch a rule of any source to shadow, off or enforce, and back
    Mode(Box<mode::Args>),
    /// Make all nodes reload the database
    Refresh(Box<refresh::Args>),
}

/// Runs a command.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::Lint(args) => lint::run(args, out),
        Command::Explain(args) => explain::run(args, out),
        Command::Test(args) => test::run(args, out),
        Command::Fmt(args) => fmt::run(args, out),
        Command::List(args) => list::run(args, out),
        Command::Get(args) => get::run(args, out),
        Command::Create(args) => create::run(args, out),
        Command::Update(args) => update::run(args, out),
        Command::Delete(args) => delete::run(args, out),
        Command::Export(args) => export::run(args, out),
        Command::Import(args) => import::run(args, out),
        Command::Diff(args) => diff::run(args, out),
        Command::Generations(args) => generations::run(args, out),
        Command::Rollback(args) => rollback::run(args, out),
        Command::Revert(args) => revert::run(args, out),
        Command::Mode(args) => mode::run(args, out),
        Command::Refresh(args) => refresh::run(args, out),
    }
}
