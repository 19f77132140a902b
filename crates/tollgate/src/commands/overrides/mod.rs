//! `tollgate overrides ...`: other numbers of one rule for one client, for a time.

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

/// What to do with overrides.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List overrides
    List(Box<list::Args>),
    /// Show an override
    Get(Box<get::Args>),
    /// Give a client other numbers for a while
    Create(Box<create::Args>),
    /// Let one last longer, or shorter
    Extend(Box<extend::Args>),
    /// End one now, and keep it for the record
    End(Box<end::Args>),
    /// Delete one
    Delete(Box<delete::Args>),
}

/// Runs one of them.
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
