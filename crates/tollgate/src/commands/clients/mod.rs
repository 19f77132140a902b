//! `tollgate clients ...`: what is known of clients, so that a request that names only a key gets its tier.

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

/// What to do with clients.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List clients
    List(Box<list::Args>),
    /// Show what is known of a client
    Get(Box<get::Args>),
    /// Say what is known of a client; makes it if it is new
    Set(Box<set::Args>),
    /// Forget a client
    Delete(Box<delete::Args>),
    /// Read many from a CSV file
    Import(Box<import::Args>),
}

/// Runs one of them.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::List(args) => list::run(args, out),
        Command::Get(args) => get::run(args, out),
        Command::Set(args) => set::run(args, out),
        Command::Delete(args) => delete::run(args, out),
        Command::Import(args) => import::run(args, out),
    }
}
