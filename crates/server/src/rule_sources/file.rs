//! Reads and compiles one rules file, without trusting its name, size or type.
//!
//! A path may become a pipe, a device or a directory between two checks, so the file is opened non-blocking and checked
//! by its open handle. Its stamp is taken before and after reading: a file that changed meanwhile is reported as
//! [`Unreadable::Changing`], because half of a rules file can be valid.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::OFlags;
use tollgate_rules::yaml::YamlNode;
use tollgate_rules::{Report, RuleFile};
use tollgate_ruleset::{CompileOptions, RuleSet};
use tracing::warn;

use super::error::{RuleSourceError, Unreadable};
use super::limits::BYTES_MAX;
use super::rule_source::{ContentFingerprint, ContentMark, FileStamp, RuleSource, SourceContent};

/// A rules file and its compile options. The options stay the same while the server runs: another secret would move
/// every bucket.
#[derive(Clone, Debug)]
pub struct RulesFileSource {
    /// Its path; links are resolved at every check.
    pub path: PathBuf,
    /// The secret and the seed.
    pub options: CompileOptions,
}

/// A loaded rules file, and the mark of its content.
#[derive(Debug)]
pub struct LoadedRulesFile {
    /// Its rules.
    pub written: Written,
    /// Identifies its content.
    pub mark: ContentMark,
}

/// The rules of a file: valid by themselves, independent of other sources.
#[derive(Debug)]
pub struct Written {
    /// Its rules, compiled.
    pub rules: RuleSet,
    /// The same uncompiled, to be combined with other sources.
    pub file: RuleFile,
    /// The same as a YAML tree, for the admin API.
    pub tree: YamlNode,
}

impl RulesFileSource {
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
            warn!(warnings = warnings.problems.len() + warnings.more, "tollgate rules lint {name} shows all warnings");
        }
        Ok(Written { rules, file, tree })
    }
}

impl RuleSource for RulesFileSource {
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

/// A consistent content of a file, and its stamp.
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

/// Most warnings that are logged per file; `tollgate rules lint` shows all.
const WARNINGS_MAX: usize = 5;

/// Opens non-blocking: opening a pipe without a writer would block.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Stamp and size of a file.
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
