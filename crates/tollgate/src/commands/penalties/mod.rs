//! `tollgate penalties ...`: who is refused altogether for a while.

pub mod lift;
pub mod list;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// The penalty commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List penalties that have not ended
    List(Box<list::Args>),
    /// Lift a penalty
    Lift(Box<lift::Args>),
}

/// Runs a command.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::List(args) => list::run(args, out),
        Command::Lift(args) => lift::run(args, out),
    }
}
