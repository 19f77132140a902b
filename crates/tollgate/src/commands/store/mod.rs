//! `tollgate store ...`: the shared store of a fleet.

mod access;
pub mod check;
mod database_overrides;
pub mod keys;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// The store commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check whether a Redis or Valkey is suitable as a store
    Check(check::Args),
    /// Show the buckets of a client in the store, decoded
    Keys(Box<keys::Args>),
}

/// Runs a command.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::Check(args) => check::run(args, out),
        Command::Keys(args) => keys::run(args, out),
    }
}
