//! `tollgate namespaces ...`: which namespaces there are.

pub mod list;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// What to do with namespaces.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List namespaces, with the number of rules of each source
    List(Box<list::Args>),
}

/// Runs one of them.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::List(args) => list::run(args, out),
    }
}
