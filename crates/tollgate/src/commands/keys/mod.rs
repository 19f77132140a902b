//! `tollgate keys ...`: API keys of clients.

pub mod create;
pub mod list;
pub mod revoke;
pub mod rotate;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use serde_json::Value;

use crate::exit::Exit;
use crate::output::Output;

/// The key commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List keys: clients, names, ends; never the secrets
    List(Box<list::Args>),
    /// Create a key for a client, and print it once
    Create(Box<create::Args>),
    /// Give a key another secret; the old one stays valid for a while
    Rotate(Box<rotate::Args>),
    /// Revoke a key
    Revoke(Box<revoke::Args>),
}

/// Runs a command.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::List(args) => list::run(args, out),
        Command::Create(args) => create::run(args, out),
        Command::Rotate(args) => rotate::run(args, out),
        Command::Revoke(args) => revoke::run(args, out),
    }
}

/// Refuses a whole key where its id is expected.
fn check_id(key_id: &str) -> Result<()> {
    if key_id.starts_with("tk_") {
        bail!("use the id of the key, not the secret: other users see the command line in the process list");
    }
    Ok(())
}

/// The whole key in a response.
fn whole_key(response: &Value) -> Result<&str> {
    response.get("key").and_then(Value::as_str).context("the response contains no key")
}

/// Prints a key that is shown once.
fn print_key(about: &str, key: &str, out: &mut Output) -> Result<()> {
    out.line(about)?;
    out.line(&out.palette().strong(key))?;
    out.line(&out.palette().faint("keep it: it is not shown again"))?;
    Ok(())
}
