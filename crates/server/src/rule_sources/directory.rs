//! A directory of files of envoyproxy/ratelimit, one domain each.
//!
//! Reads every `*.yaml` and `*.yml` in it and below, in the order of their names. Names with a leading dot are skipped:
//! editors keep copies there, and a mounted ConfigMap its hidden directories. Links to files are followed, links to
//! directories only for the directory itself, as in that service: a deployment can swap one link to change all files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tollgate_admin::FileRule;
use tollgate_core::Digest;
use tollgate_rules::envoy::{Duplicates, EnvoyDomain, EnvoyFile};
use tollgate_rules::read::decode;
use tollgate_rules::{Report, envoy};
use tollgate_ruleset::{CompileOptions, RuleSet};
use tracing::warn;

use super::error::{RuleSourceError, Unreadable};
use super::file::{file_facts, read};
use super::limits::{BYTES_MAX, FILES_MAX};
use super::listed;
use super::rule_source::{ContentFingerprint, ContentMark, FileStamp, RuleSource, SourceContent};

/// Depth of the deepest directory that is read.
const DEPTH_MAX: usize = 8;
/// Most bytes of all files together.
const ALL_BYTES_MAX: u64 = 4 * BYTES_MAX;

/// A directory of domains.
#[derive(Clone, Debug)]
pub struct EnvoyDirectory {
    /// Its path; links are resolved at every check.
    pub path: PathBuf,
    /// Whether several files may add to one domain.
    pub duplicates: Duplicates,
    /// Whether a file may lose more than half of its limits while it is watched.
    pub allow_shrink: bool,
    /// The secret and the seed.
    pub options: CompileOptions,
}

/// The files of a directory: name and content.
pub type Files = Vec<(String, Vec<u8>)>;

/// The domains of a directory: valid by themselves, independent of other sources.
#[derive(Clone, Debug, Default)]
pub struct EnvoyDomains {
    /// The domains, in the order of their names.
    pub domains: Vec<EnvoyDomain>,
    /// Their rules as the admin API lists them.
    pub(super) listed: Vec<FileRule>,
    rules: usize,
    /// The files that were read.
    files: BTreeSet<String>,
    allow_shrink: bool,
}

impl EnvoyDomains {
    /// Why these look truncated against `before`, unless shrinking is allowed.
    pub(super) fn shrinkage(&self, before: &EnvoyDomains) -> Option<String> {
        match self.allow_shrink {
            true => None,
            false => envoy::shrinkage(&before.domains, &self.domains, |file| self.files.contains(file)),
        }
    }
}

impl EnvoyDirectory {
    /// Reads and compiles all files.
    pub fn load(&self) -> Result<(EnvoyDomains, ContentMark), RuleSourceError> {
        let content = self.read()?;
        let domains = self.compile(&content.data)?;
        let mark = ContentMark { fingerprint: content.fingerprint, stamp: content.stamp, rules: domains.rules };
        Ok((domains, mark))
    }

    /// The domains of the files, or a report for each invalid file.
    fn parse(&self, files: &Files) -> Result<Vec<EnvoyDomain>, Vec<Report>> {
        let (mut texts, mut reports) = (Vec::with_capacity(files.len()), Vec::new());
        for (file, bytes) in files {
            match decode(file, bytes) {
                Ok(text) => texts.push(EnvoyFile { file, text }),
                Err(report) => reports.push(report),
            }
        }
        match envoy::load(&texts, self.duplicates) {
            Ok(domains) if reports.is_empty() => Ok(domains),
            Ok(_) => Err(reports),
            Err(more) => Err(reports.into_iter().chain(more).collect()),
        }
    }

    fn paths(&self) -> Result<YamlPaths, Unreadable> {
        let facts = fs::metadata(&self.path).map_err(|error| match error.into() {
            Unreadable::Missing => Unreadable::NoDirectory,
            reason => reason,
        })?;
        if !facts.is_dir() {
            return Err(Unreadable::NotDirectory);
        }
        let mut paths = YamlPaths::default();
        list(&self.path, 1, &mut paths)?;
        paths.found.sort_unstable();
        Ok(paths)
    }
}

/// The YAML files of a directory.
#[derive(Default)]
struct YamlPaths {
    found: Vec<PathBuf>,
    /// A directory that is too deep to be read.
    too_deep: Option<PathBuf>,
}

/// Adds the files of one directory, then of those below.
fn list(directory: &Path, depth: usize, paths: &mut YamlPaths) -> Result<(), Unreadable> {
    for entry in fs::read_dir(directory).map_err(|error| inside(directory, error.into()))? {
        let entry = entry.map_err(|error| inside(directory, error.into()))?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let kind = entry.file_type().map_err(|error| inside(directory, error.into()))?;
        let path = entry.path();
        if kind.is_dir() && depth < DEPTH_MAX {
            list(&path, depth + 1, paths)?;
        } else if kind.is_dir() {
            paths.too_deep.get_or_insert(path);
        } else if is_yaml(&path) {
            paths.found.push(path);
        }
        if paths.found.len() > FILES_MAX {
            return Err(Unreadable::TooMany);
        }
    }
    Ok(())
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// A problem of one file. A file that vanished since it was listed means that the directory is changing.
fn inside(path: &Path, reason: Unreadable) -> Unreadable {
    match reason {
        Unreadable::Missing | Unreadable::Changing => Unreadable::Changing,
        reason => Unreadable::Entry(path.display().to_string(), Box::new(reason)),
    }
}

/// A stamp of all files: of their names and their stamps.
fn combined_stamp(stamps: impl IntoIterator<Item = (PathBuf, FileStamp)>) -> FileStamp {
    let words = stamps.into_iter().flat_map(|(path, FileStamp(Digest([a, b])))| {
        let ContentFingerprint(Digest([c, d])) = ContentFingerprint::of([path.as_os_str().as_encoded_bytes()]);
        [a, b, c, d]
    });
    FileStamp::of(words)
}

impl RuleSource for EnvoyDirectory {
    type Data = Files;
    type Compiled = EnvoyDomains;

    fn path(&self) -> &Path {
        &self.path
    }

    fn stamp(&self) -> Result<FileStamp, Unreadable> {
        let look = |path: PathBuf| {
            let facts = fs::metadata(&path).map_err(Unreadable::from).and_then(|facts| file_facts(&facts));
            // A dangling link may be a change in progress: it is reported once it stays.
            let facts = facts.map_err(|reason| Unreadable::Entry(path.display().to_string(), Box::new(reason)))?;
            Ok((path, facts.stamp))
        };
        Ok(combined_stamp(self.paths()?.found.into_iter().map(look).collect::<Result<Vec<_>, Unreadable>>()?))
    }

    fn read(&self) -> Result<SourceContent<Files>, Unreadable> {
        let (mut data, mut stamps, mut size) = (Files::new(), Vec::new(), 0);
        let paths = self.paths()?;
        if let Some(directory) = &paths.too_deep {
            warn!(directory = %directory.display(), "files more than {DEPTH_MAX} directories deep are not read");
        }
        for path in paths.found {
            let (bytes, stamp) = read(&path).map_err(|reason| inside(&path, reason))?;
            size += bytes.len() as u64;
            if size > ALL_BYTES_MAX {
                return Err(inside(&path, Unreadable::TooLarge));
            }
            data.push((path.display().to_string(), bytes));
            stamps.push((path, stamp));
        }
        let parts = data.iter().flat_map(|(name, bytes)| [name.as_bytes(), bytes.as_slice()]);
        let (fingerprint, stamp) = (ContentFingerprint::of(parts), combined_stamp(stamps));
        // Files that changed during the read may not belong together.
        if self.stamp()? != stamp {
            return Err(Unreadable::Changing);
        }
        Ok(SourceContent { data, fingerprint, stamp })
    }

    fn compile(&self, files: &Files) -> Result<EnvoyDomains, RuleSourceError> {
        let invalid = |report| RuleSourceError::Invalid(Box::new(report));
        // Only the first file: one report is long enough. No report would be a bug.
        let first = |reports: Vec<Report>| reports.into_iter().next().map_or(RuleSourceError::Panicked, invalid);
        let domains = self.parse(files).map_err(first)?;
        let rules = RuleSet::assemble_with(&[], &domains, &self.options)
            .map_err(|problems| invalid(Report::new(&self.path.display().to_string(), "", problems)))?;
        Ok(EnvoyDomains {
            domains,
            listed: listed::of_domains(&rules),
            rules: rules.rules().len(),
            files: files.iter().map(|(name, _)| name.clone()).collect(),
            allow_shrink: self.allow_shrink,
        })
    }

    fn is_empty(files: &Files) -> bool {
        files.is_empty()
    }

    fn rules(written: &EnvoyDomains) -> usize {
        written.rules
    }
}
