//! `tollgate clients ...`: the client directory, which supplies the tier and other attributes of a client key.

mod csv;
pub mod delete;
pub mod get;
pub mod import;
pub mod list;
pub mod set;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// The client commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List clients
    List(Box<list::Args>),
    /// Show a client
    Get(Box<get::Args>),
    /// Set fields of a client; creates it if it is new
    Set(Box<set::Args>),
    /// Delete a client
    Delete(Box<delete::Args>),
    /// Import clients from a CSV file
    Import(Box<import::Args>),
}

/// Runs a command.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::List(args) => list::run(args, out),
        Command::Get(args) => get::run(args, out),
        Command::Set(args) => set::run(args, out),
        Command::Delete(args) => delete::run(args, out),
        Command::Import(args) => import::run(args, out),
    }
}
