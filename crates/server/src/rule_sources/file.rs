//! One rules file, from its name to a compiled rule set. Nothing here trusts a name, a size or a kind.
//!
//! A name may turn into a pipe, a device or a directory between two looks, so the file is opened without waiting and
//! judged by its open handle. Its stamp is taken before and after reading: a file that changed meanwhile is reported as
//! [`Unreadable::Changing`], because half of a rules file can be a valid one.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use rustix::fs::OFlags;
use tollgate_rules::ruleset::{CompileOptions, RuleSet};
use tollgate_rules::yaml::YamlNode;
use tollgate_rules::{Report, RuleFile, yaml};
use tracing::warn;

use super::directory::FILES_MAX;
use super::watched::{Content, Fingerprint, Mark, Stamp, Watched};

/// Longest file accepted: as much as the reader of rules takes, 16 MiB.
pub const BYTES_MAX: u64 = yaml::TEXT_BYTES_MAX as u64;

/// A rules file, and what compiling it needs. The options stay the same for as long as the server runs: another secret
/// would move every bucket.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file; symbolic links are followed anew at every look.
    pub path: PathBuf,
    /// The secret and the seed.
    pub options: CompileOptions,
}

/// A rules file that was read, and the content it was read from.
#[derive(Debug)]
pub struct Loaded {
    /// What it says.
    pub written: Written,
    /// Its content.
    pub mark: Mark,
}

/// What a rules file says: valid by itself, whatever else is in force beside it.
#[derive(Debug)]
pub struct Written {
    /// Its rules, compiled.
    pub rules: RuleSet,
    /// The same as they were read, to be put together with others.
    pub file: RuleFile,
    /// The same as a tree, to be shown.
    pub tree: YamlNode,
}

impl Source {
    /// Reads and compiles the file.
    pub fn load(&self) -> Result<Loaded, RuleSourceError> {
        let content = self.read()?;
        let written = self.compile(&content.data)?;
        let rules = written.rules.rules().len();
        let mark = Mark { fingerprint: content.fingerprint, stamp: content.stamp, rules };
        Ok(Loaded { written, mark })
    }

    fn written(&self, bytes: &[u8]) -> Result<Written, Report> {
        let name = self.path.to_string_lossy();
        let text = tollgate_rules::read::decode(&name, bytes)?;
        let (mut file, tree) = tollgate_rules::read::read_with_tree(&name, text)?;
        file.file_name = Some(name.as_ref().into());
        let warnings = Report::new(&name, text, tollgate_rules::lint_text(&file, text));
        let rules = RuleSet::compile(std::slice::from_ref(&file), &self.options)
            .map_err(|problems| Report::new(&name, text, problems))?;
        for warning in warnings.problems.iter().take(WARNINGS_MAX) {
            let (line, column) = (warning.line, warning.column);
            warn!(file = %name, line, column, warning = %warning.message, "a rule may not do what it was written for");
        }
        if !warnings.problems.is_empty() {
            warn!(warnings = warnings.problems.len() + warnings.more, "tollgate rules lint {name} tells more");
        }
        Ok(Written { rules, file, tree })
    }
}

impl Watched for Source {
    type Data = Vec<u8>;
    type Written = Written;

    fn path(&self) -> &Path {
        &self.path
    }

    fn look(&self) -> Result<Stamp, Unreadable> {
        Ok(stamp(&fs::metadata(&self.path)?)?.stamp)
    }

    fn read(&self) -> Result<Content<Vec<u8>>, Unreadable> {
        let (data, stamp) = read(&self.path)?;
        Ok(Content { fingerprint: Fingerprint::of([data.as_slice()]), data, stamp })
    }

    fn compile(&self, data: &Vec<u8>) -> Result<Written, RuleSourceError> {
        self.written(data).map_err(|report| RuleSourceError::Invalid(Box::new(report)))
    }

    fn rules(written: &Written) -> usize {
        written.rules.rules().len()
    }
}

/// The content of a file as it was at one moment, and its stamp.
pub(super) fn read(path: &Path) -> Result<(Vec<u8>, Stamp), Unreadable> {
    let file = open(path)?;
    let before = stamp(&file.metadata()?)?;
    let mut bytes = Vec::with_capacity(usize::try_from(before.size).unwrap_or(0));
    (&file).take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Unreadable::TooLarge);
    }
    let after = stamp(&file.metadata()?)?;
    if before != after || bytes.len() as u64 != after.size {
        return Err(Unreadable::Changing);
    }
    Ok((bytes, after.stamp))
}

/// Warnings about one file that are logged; the command line tells all of them.
const WARNINGS_MAX: usize = 5;

/// Opens for reading without waiting: a pipe without a writer would hold whoever opens it.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// What is known of a file without reading it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) stamp: Stamp,
    size: u64,
}

pub(super) fn stamp(facts: &Metadata) -> Result<Facts, Unreadable> {
    if facts.is_dir() {
        return Err(Unreadable::Directory);
    }
    if !facts.is_file() {
        return Err(Unreadable::NotRegular);
    }
    if facts.size() > BYTES_MAX {
        return Err(Unreadable::TooLarge);
    }
    let times = [facts.mtime(), facts.mtime_nsec(), facts.ctime(), facts.ctime_nsec()].map(i64::cast_unsigned);
    let stamp = Stamp::of([facts.dev(), facts.ino(), facts.size()].into_iter().chain(times));
    Ok(Facts { stamp, size: facts.size() })
}

/// Why a name leads to no rules file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// There is nothing of that name.
    Missing,
    /// A directory.
    Directory,
    /// A pipe, a socket or a device.
    NotRegular,
    /// More than [`BYTES_MAX`].
    TooLarge,
    /// Someone wrote to it while it was read.
    Changing,
    /// A file where a directory should be.
    NotDirectory,
    /// There is no directory of that name.
    NoDirectory,
    /// There is no file left in the directory, and there were some.
    Emptied,
    /// More files than are read from one directory.
    TooMany,
    /// A file of the directory, and what is wrong with it.
    Entry(String, Box<Unreadable>),
    /// The system refused.
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

/// Why there are no new rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleSourceError {
    /// The file cannot be read.
    Unreadable(Unreadable),
    /// It can be read and says nothing valid. Prints its first problem with its place; the report has them all.
    Invalid(Box<Report>),
    /// It is valid, and does not go together with other rules.
    Conflict(String),
    /// It is valid, and looks like a part of what is in force.
    Shrunk(String),
    /// Reading or compiling it panicked, which is a bug of ours; the old rules stay.
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
