//! `tollgate audit [list|verify]`: the audit log.

pub mod list;
pub mod verify;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::output::Output;

/// The audit commands; `list` is the default.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = list::HELP)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: list::AuditListArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List changes, the latest first
    List(Box<list::AuditListArgs>),
    /// Check that no row of the audit log was changed, added or removed
    Verify(Box<verify::Args>),
}

/// Runs a command.
pub fn run(args: &Args, out: &mut Output) -> Result<Exit> {
    match &args.command {
        Some(Command::List(inner)) => list::run(inner, out),
        Some(Command::Verify(inner)) => verify::run(inner, out),
        None => list::run(&args.list, out),
    }
}
