//! `tollgate overrides ...`: other numbers of one rule for one client, for a time.

pub mod create;
pub mod delete;
pub mod end;
pub mod extend;
pub mod get;
pub mod list;

use anyhow::Result;
use clap::Subcommand;
use serde_json::Value;
use tollgate_core::Time;
use tollgate_rules::datetime;

use crate::exit::Exit;
use crate::output::Output;
use crate::render::{member, moment};

/// What to do with overrides.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List overrides
    List(Box<list::Args>),
    /// Show an override
    Get(Box<get::Args>),
    /// Give a client other numbers for a while
    Create(Box<create::Args>),
    /// Let one last longer, or shorter
    Extend(Box<extend::Args>),
    /// End one now, and keep it for the record
    End(Box<end::Args>),
    /// Delete one
    Delete(Box<delete::Args>),
}

/// Runs one of them.
pub fn run(command: &Command, out: &mut Output) -> Result<Exit> {
    match command {
        Command::List(args) => list::run(args, out),
        Command::Get(args) => get::run(args, out),
        Command::Create(args) => create::run(args, out),
        Command::Extend(args) => extend::run(args, out),
        Command::End(args) => end::run(args, out),
        Command::Delete(args) => delete::run(args, out),
    }
}

/// `500, burst 1000`, `unlimited`.
fn numbers(entry: &Value) -> String {
    if entry.get("unlimited") == Some(&Value::Bool(true)) {
        return "unlimited".to_owned();
    }
    let number = |name: &str| entry.get(name).and_then(Value::as_u64).filter(|number| *number > 0);
    match (entry.get("max_requests").and_then(Value::as_u64), number("burst_size")) {
        (Some(most), Some(burst)) => format!("{most}, burst {burst}"),
        (Some(most), None) => most.to_string(),
        (None, Some(burst)) => format!("burst {burst}"),
        (None, None) => "-".to_owned(),
    }
}

/// `active`, `ended`, `not yet`.
fn state(entry: &Value, now: Time) -> &'static str {
    let time = |name: &str| entry.get(name).and_then(Value::as_str).and_then(|text| datetime::parse(text).ok());
    match (time("valid_from"), time("valid_until")) {
        (Some(from), _) if from > now.nanos() => "not yet",
        (_, Some(until)) if until <= now.nanos() => "ended",
        _ => "active",
    }
}

/// One line about an override.
fn line(entry: &Value, now: Time) -> String {
    let word = |name: &str| member(entry, name);
    let until = moment(&word("valid_until"), now);
    format!("{} for {} of rule {}, until {until}", numbers(entry), word("client_key"), word("rule_id"))
}
