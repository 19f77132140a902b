//! One file per command: its flags, its help, what it does.

pub mod audit;
pub mod bench;
pub mod check;
pub mod clients;
pub mod completions;
pub mod config;
pub mod db;
pub mod envoy_compat;
pub mod explain;
pub mod man;
pub mod mode;
pub mod namespaces;
pub mod overrides;
pub mod rules;
pub mod serve;
pub mod status;
pub mod store;
pub mod tokens;
pub mod violations;

use anyhow::Result;
use clap::CommandFactory;

use crate::cli::{Cli, Command};
use crate::exit::Exit;
use crate::output::Output;

/// Runs a command. An error means that it could not do its work: exit code 2.
pub fn run(cli: Cli, out: &mut Output) -> Result<Exit> {
    match cli.command {
        Some(Command::Serve(args)) => serve::run(&args, out),
        Some(Command::EnvoyCompat(args)) => envoy_compat::run(&args, out),
        Some(Command::Config(args)) => config::run(&args, out),
        Some(Command::Check(args)) => check::run(&args, out),
        Some(Command::Explain(args)) => explain::run(&args, out),
        Some(Command::Rules(command)) => rules::run(&command, out),
        Some(Command::Namespaces(command)) => namespaces::run(&command, out),
        Some(Command::Overrides(command)) => overrides::run(&command, out),
        Some(Command::Clients(command)) => clients::run(&command, out),
        Some(Command::Violations(args)) => violations::run(&args, out),
        Some(Command::Audit(args)) => audit::run(&args, out),
        Some(Command::Tokens(command)) => tokens::run(&command, out),
        Some(Command::Mode(args)) => mode::run(&args, out),
        Some(Command::Status(args)) => status::run(&args, out),
        Some(Command::Db(command)) => db::run(&command, out),
        Some(Command::Store(command)) => store::run(&command, out),
        Some(Command::Bench(args)) => bench::run(&args, out),
        Some(Command::Completions(args)) => completions::run(&args, out),
        Some(Command::Man(args)) => man::run(&args, out),
        None => {
            let help = Cli::command().render_help();
            let help = if out.palette().colour { help.ansi().to_string() } else { help.to_string() };
            out.text(&help)?;
            Ok(Exit::Ok)
        }
    }
}
