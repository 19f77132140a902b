//! `tollgate rules ...`: everything about rules, in files and on a server.

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

/// What to do with rules: first what needs only files, then what asks a server.
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
    /// List the rules of a server
    List(Box<list::Args>),
    /// Show a rule of a server, as YAML
    #[command(visible_alias = "show")]
    Get(Box<get::Args>),
    /// Make a rule, from flags or a file
    Create(Box<create::Args>),
    /// Change a rule
    Update(Box<update::Args>),
    /// Delete a rule
    Delete(Box<delete::Args>),
    /// Print everything as a rules file
    Export(Box<export::Args>),
    /// Bring a server to what a rules file says
    Import(Box<import::Args>),
    /// Show what a file would change, or what changed between generations
    Diff(Box<diff::Args>),
    /// List the generations: who changed what, when
    Generations(Box<generations::Args>),
    /// Go back to a generation
    Rollback(Box<rollback::Args>),
    /// Revert one change
    Revert(Box<revert::Args>),
    /// Switch a rule to shadow, off or enforce, whatever its source; and back
    Mode(Box<mode::Args>),
    /// Let all nodes read everything anew
    Refresh(Box<refresh::Args>),
}

/// Runs one of them.
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
