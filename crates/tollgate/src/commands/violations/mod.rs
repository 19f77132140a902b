//! `tollgate violations [list|top]`: who was refused, how often.

mod filter;
pub mod list;
pub mod top;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// What to look at; by itself it lists.
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
    /// List refusals by client, rule and minute, the latest first
    List(Box<list::ViolationListArgs>),
    /// Show who or what was refused most
    Top(Box<top::Args>),
}

/// Runs one of them.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    match &args.command {
        Some(Command::List(inner)) => list::run(inner, out),
        Some(Command::Top(inner)) => top::run(inner, out),
        None => list::run(&args.list, out),
    }
}
