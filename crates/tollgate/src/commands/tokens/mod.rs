//! `tollgate tokens ...`: access tokens.

pub mod create;
pub mod list;
pub mod revoke;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// The token commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List tokens: names, roles, last use; never the secrets
    List(Box<list::Args>),
    /// Create a token, and print it once
    Create(Box<create::Args>),
    /// Revoke a token
    Revoke(Box<revoke::Args>),
}

/// Runs a command.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::List(args) => list::run(args, out),
        Command::Create(args) => create::run(args, out),
        Command::Revoke(args) => revoke::run(args, out),
    }
}
