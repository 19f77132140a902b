//! `tollgate plans ...`: named sets of rules, and the clients that have them.

pub mod assign;
pub mod diff;
pub mod list;
pub mod show;
mod source;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// The plan commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List plans
    List(Box<list::Args>),
    /// Show the rules that a plan has, and the plan that brings each
    #[command(visible_alias = "get")]
    Show(Box<show::Args>),
    /// Compare the rules of two plans
    Diff(Box<diff::Args>),
    /// Assign a plan to a client or an organisation, from a date if need be
    Assign(Box<assign::Args>),
}

/// Runs a command.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::List(args) => list::run(args, out),
        Command::Show(args) => show::run(args, out),
        Command::Diff(args) => diff::run(args, out),
        Command::Assign(args) => assign::run(args, out),
    }
}
