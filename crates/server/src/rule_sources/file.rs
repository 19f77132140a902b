//! One rules file, from its name to a compiled rule set. Nothing here trusts a name, a size or a kind.
//!
//! A name may turn into a pipe, a device or a directory between two looks, so the file is opened without waiting and
//! judged by its open handle. Its stamp is taken before and after reading: a file that changed meanwhile is reported as
//! [`Unreadable::Changing`], because half of a rules file can be a valid one.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::OFlags;
use tollgate_rules::ruleset::{CompileOptions, RuleSet};
use tollgate_rules::yaml::Node;
use tollgate_rules::{Report, RuleFile};
use tracing::warn;

use super::error::{RuleSourceError, Unreadable};
use super::limits::BYTES_MAX;
use super::rule_source::{ContentFingerprint, ContentMark, FileStamp, RuleSource, SourceContent};

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
pub struct LoadedRulesFile {
    /// What it says.
    pub written: Written,
    /// Its content.
    pub mark: ContentMark,
}

/// What a rules file says: valid by itself, whatever else is in force beside it.
#[derive(Debug)]
pub struct Written {
    /// Its rules, compiled.
    pub rules: RuleSet,
    /// The same as they were read, to be put together with others.
    pub file: RuleFile,
    /// The same as a tree, to be shown.
    pub tree: Node,
}

impl Source {
    /// Reads and compiles the file.
    pub fn load(&self) -> Result<LoadedRulesFile, RuleSourceError> {
        let content = self.read()?;
        let written = self.compile(&content.data)?;
        let rules = written.rules.rules().len();
        let mark = ContentMark { fingerprint: content.fingerprint, stamp: content.stamp, rules };
        Ok(LoadedRulesFile { written, mark })
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

impl RuleSource for Source {
    type Data = Vec<u8>;
    type Compiled = Written;

    fn path(&self) -> &Path {
        &self.path
    }

    fn stamp(&self) -> Result<FileStamp, Unreadable> {
        Ok(file_facts(&fs::metadata(&self.path)?)?.stamp)
    }

    fn read(&self) -> Result<SourceContent<Vec<u8>>, Unreadable> {
        let (data, stamp) = read(&self.path)?;
        Ok(SourceContent { fingerprint: ContentFingerprint::of([data.as_slice()]), data, stamp })
    }

    fn compile(&self, data: &Vec<u8>) -> Result<Written, RuleSourceError> {
        self.written(data).map_err(|report| RuleSourceError::Invalid(Box::new(report)))
    }

    fn rules(written: &Written) -> usize {
        written.rules.rules().len()
    }
}

/// The content of a file as it was at one moment, and its stamp.
pub(super) fn read(path: &Path) -> Result<(Vec<u8>, FileStamp), Unreadable> {
    let file = open(path)?;
    let before = file_facts(&file.metadata()?)?;
    let mut bytes = Vec::with_capacity(usize::try_from(before.size).unwrap_or(0));
    (&file).take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Unreadable::TooLarge);
    }
    let after = file_facts(&file.metadata()?)?;
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
pub(super) struct FileFacts {
    pub(super) stamp: FileStamp,
    size: u64,
}

pub(super) fn file_facts(metadata: &Metadata) -> Result<FileFacts, Unreadable> {
    if metadata.is_dir() {
        return Err(Unreadable::Directory);
    }
    if !metadata.is_file() {
        return Err(Unreadable::NotRegular);
    }
    if metadata.size() > BYTES_MAX {
        return Err(Unreadable::TooLarge);
    }
    let times =
        [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()].map(i64::cast_unsigned);
    let stamp = FileStamp::of([metadata.dev(), metadata.ino(), metadata.size()].into_iter().chain(times));
    Ok(FileFacts { stamp, size: metadata.size() })
}
