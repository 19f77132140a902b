//! `tollgate tokens ...`: who may use the admin API.

pub mod create;
pub mod list;
pub mod revoke;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List tokens: names, roles, when they were last used; never the secrets
    List(Box<list::Args>),
    /// Make a token, and print it once
    Create(Box<create::Args>),
    /// Revoke a token
    Revoke(Box<revoke::Args>),
}

/// Runs one of them.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::List(args) => list::run(args, out),
        Command::Create(args) => create::run(args, out),
        Command::Revoke(args) => revoke::run(args, out),
    }
}
