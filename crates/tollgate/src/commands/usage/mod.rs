//! `tollgate usage [history]`: what clients have used of their limits, now and in past periods.

mod current;
mod history;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// The usage commands; without one, the usage of now.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = current::HELP)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    current: current::CurrentUsageArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List what was used of quotas by client, rule and period, the latest first
    History(Box<history::Args>),
}

/// Runs a command.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    match &args.command {
        Some(Command::History(inner)) => history::run(inner, out),
        None => current::run(&args.current, out),
    }
}
