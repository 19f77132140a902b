//! `tollgate overrides ...`: other limits of one rule for one client, for a limited time.

pub mod create;
pub mod delete;
pub mod end;
pub mod extend;
pub mod get;
pub mod list;
mod words;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// The override commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List overrides
    List(Box<list::Args>),
    /// Show an override
    Get(Box<get::Args>),
    /// Create an override for a client
    Create(Box<create::Args>),
    /// Change the end of an override
    Extend(Box<extend::Args>),
    /// End an override now, and keep it in the list
    End(Box<end::Args>),
    /// Delete an override
    Delete(Box<delete::Args>),
}

/// Runs a command.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::List(args) => list::run(args, out),
        Command::Get(args) => get::run(args, out),
        Command::Create(args) => create::run(args, out),
        Command::Extend(args) => extend::run(args, out),
        Command::End(args) => end::run(args, out),
        Command::Delete(args) => delete::run(args, out),
    }
}
