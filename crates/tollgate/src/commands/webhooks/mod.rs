//! `tollgate webhooks ...`: URLs that events are sent to.

pub mod create;
pub mod delete;
pub mod deliveries;
pub mod list;
pub mod test;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// The webhook commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List webhooks; never their secrets
    List(Box<list::Args>),
    /// Create a webhook, and print its secret once
    Create(Box<create::Args>),
    /// Send a test message, and print how it ended
    Test(Box<test::Args>),
    /// What was sent to a webhook, and how it ended
    Deliveries(Box<deliveries::Args>),
    /// Delete a webhook
    Delete(Box<delete::Args>),
}

/// Runs a command.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::List(args) => list::run(args, out),
        Command::Create(args) => create::run(args, out),
        Command::Test(args) => test::run(args, out),
        Command::Deliveries(args) => deliveries::run(args, out),
        Command::Delete(args) => delete::run(args, out),
    }
}
