//! `tollgate counters ...`

pub mod reset;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// The counter commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Forget what a client has used
    Reset(Box<reset::Args>),
}

/// Runs a command.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::Reset(args) => reset::run(args, out),
    }
}
