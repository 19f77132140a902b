//! `tollgate namespaces ...`

pub mod list;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// The namespace commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List namespaces, with the number of rules of each source
    List(Box<list::Args>),
}

/// Runs a command.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::List(args) => list::run(args, out),
    }
}
