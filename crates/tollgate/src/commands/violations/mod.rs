//! `tollgate violations [list|top]`: denied requests, counted by client, rule and minute.

mod filter;
pub mod list;
pub mod top;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// The violation commands; `list` is the default.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = list::HELP)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: list::ViolationListArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List denied requests by client, rule and minute, the latest first
    List(Box<list::ViolationListArgs>),
    /// Show the clients, rules or endpoints with the most denied requests
    Top(Box<top::Args>),
}

/// Runs a command.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    match &args.command {
        Some(Command::List(inner)) => list::run(inner, out),
        Some(Command::Top(inner)) => top::run(inner, out),
        None => list::run(&args.list, out),
    }
}
