//! `tollgate grants ...`: units that one client gets once, on top of a quota.

pub mod add;
pub mod delete;
pub mod list;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// The grant commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Grant units to a client once
    Add(Box<add::Args>),
    /// List grants
    List(Box<list::Args>),
    /// Take a grant back
    Delete(Box<delete::Args>),
}

/// Runs a command.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::Add(args) => add::run(args, out),
        Command::List(args) => list::run(args, out),
        Command::Delete(args) => delete::run(args, out),
    }
}
