//! `tollgate store ...`: everything about the servers that a fleet shares.

mod access;
pub mod check;
pub mod keys;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// What to do with a store.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find out whether a Redis or Valkey can be trusted with buckets
    Check(check::Args),
    /// Show the buckets of a client in Redis or Valkey, decoded
    Keys(Box<keys::Args>),
}

/// Runs it.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::Check(args) => check::run(args, out),
        Command::Keys(args) => keys::run(args, out),
    }
}
