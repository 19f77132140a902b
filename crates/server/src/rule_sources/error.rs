//! Why rules were not loaded.

use std::io::ErrorKind;
use std::{fmt, io};

use tollgate_rules::Report;

use super::limits::{BYTES_MAX, FILES_MAX};

/// Why a rules file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// No such file.
    Missing,
    /// A directory.
    Directory,
    /// A pipe, a socket or a device.
    NotRegular,
    /// More than [`BYTES_MAX`].
    TooLarge,
    /// It changed while it was read.
    Changing,
    /// A file where a directory should be.
    NotDirectory,
    /// No such directory.
    NoDirectory,
    /// The directory has no files any more.
    Emptied,
    /// More files than are read from one directory.
    TooMany,
    /// A file of the directory, and what is wrong with it.
    Entry(String, Box<Unreadable>),
    /// The system refused access.
    Refused(String),
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Unreadable {
        match error.kind() {
            ErrorKind::NotFound => Unreadable::Missing,
            ErrorKind::PermissionDenied => Unreadable::Refused("permission denied".to_owned()),
            _ => Unreadable::Refused(error.to_string()),
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Missing => f.write_str("there is no such file"),
            Unreadable::Directory => f.write_str("it is a directory: name a file in it"),
            Unreadable::NotRegular => f.write_str("it is not a regular file"),
            Unreadable::TooLarge => write!(f, "it is too large: at most {BYTES_MAX} bytes are read"),
            Unreadable::Changing => f.write_str("it changed while it was read"),
            Unreadable::NotDirectory => f.write_str("it is not a directory: name the one that the files are in"),
            Unreadable::NoDirectory => f.write_str("there is no such directory"),
            Unreadable::Emptied => f.write_str("there is no *.yaml or *.yml in it any more"),
            Unreadable::TooMany => write!(f, "there are too many files: at most {FILES_MAX} are read"),
            Unreadable::Entry(name, reason) => write!(f, "{name}: {reason}"),
            Unreadable::Refused(reason) => f.write_str(reason),
        }
    }
}

/// Why rules were not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleSourceError {
    /// The file cannot be read.
    Unreadable(Unreadable),
    /// It is invalid. Prints the first problem with its position; the report has them all.
    Invalid(Box<Report>),
    /// It is valid, and conflicts with other rules.
    Conflict(String),
    /// It is valid, and looks like a truncated version of the active rules.
    Shrunk(String),
    /// Reading or compiling it panicked, which is a bug; the active rules stay.
    Panicked,
}

impl From<Unreadable> for RuleSourceError {
    fn from(reason: Unreadable) -> RuleSourceError {
        RuleSourceError::Unreadable(reason)
    }
}

impl fmt::Display for RuleSourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleSourceError::Unreadable(reason) => reason.fmt(f),
            RuleSourceError::Invalid(report) => first_problem(report, f),
            RuleSourceError::Conflict(problem) => f.write_str(problem),
            RuleSourceError::Shrunk(problem) => write!(f, "held back: {problem}"),
            RuleSourceError::Panicked => f.write_str("reading the rules panicked; this is a bug in Tollgate"),
        }
    }
}

impl std::error::Error for RuleSourceError {}

fn first_problem(report: &Report, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(problem) = report.problems.first() else { return write!(f, "{}: not valid", report.file) };
    write!(f, "{}:{}:{}: {} [{}]", report.file, problem.line, problem.column, problem.message, problem.code)?;
    if let Some(help) = &problem.help {
        write!(f, "; {help}")?;
    }
    match report.problems.len() - 1 + report.more {
        0 => Ok(()),
        1 => f.write_str(", and 1 more problem"),
        more => write!(f, ", and {more} more problems"),
    }
}
