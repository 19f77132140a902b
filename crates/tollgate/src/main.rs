//! `tollgate`, the one binary: the server, the clients of a server, and the tools for rules files.
//!
//! This file only wires: arguments to a command, its result to an exit code. [`cli`] lists the commands.

mod admin;
mod cli;
mod client;
mod commands;
mod decider;
mod document;
mod exit;
mod output;
mod replace;
mod settings;
mod url_encoding;
mod when;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use tollgate_rule_tests::{input, load, request, suite};

use crate::cli::Cli;
use crate::client::ApiProblem;
use crate::exit::Exit;
use crate::output::Output;

/// A server makes many small allocations on several threads, and frees some of them on other threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut out = Output::of_process();
    let exit = match Cli::try_parse() {
        Ok(cli) => cli::run(cli, &mut out).unwrap_or_else(|error| {
            out.error(&error);
            error.downcast_ref::<ApiProblem>().map_or(Exit::Unusable, ApiProblem::exit)
        }),
        Err(error) => {
            // A closed pipe: there is no reader left to report the error to.
            let _ = error.print();
            match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Ok,
                _ => Exit::Unusable,
            }
        }
    };
    exit.max(out.finish()).into()
}
