//! The trait of watched rule sources.

use std::path::Path;

use tollgate_core::{Digest, KeyHasher, Secret};

use super::error::{RuleSourceError, Unreadable};

/// Rules on disk: cheap to check for changes, read after a change. All methods may block.
pub trait RuleSource: Send + Sync + 'static {
    /// Its raw content.
    type Data: Send;
    /// Its compiled rules.
    type Compiled: Send;

    /// Its path, for messages.
    fn path(&self) -> &Path;

    /// A stamp that changes with the content, without reading it. Resolves links.
    fn stamp(&self) -> Result<FileStamp, Unreadable>;

    /// Reads a consistent content.
    fn read(&self) -> Result<SourceContent<Self::Data>, Unreadable>;

    /// Compiles the content.
    fn compile(&self, data: &Self::Data) -> Result<Self::Compiled, RuleSourceError>;

    /// True if the source exists and is empty. After it had rules, that is an error.
    fn is_empty(_: &Self::Data) -> bool {
        false
    }

    /// The number of rules.
    fn rules(written: &Self::Compiled) -> usize;
}

/// Changes when a file changes, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp(pub(super) Digest);

/// A digest of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentFingerprint(pub(super) Digest);

/// Identifies a loaded content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentMark {
    pub(super) fingerprint: ContentFingerprint,
    pub(super) stamp: FileStamp,
    pub(super) rules: usize,
}

/// The content of a source.
#[derive(Debug)]
pub struct SourceContent<D> {
    /// The content.
    pub data: D,
    /// Its digest.
    pub fingerprint: ContentFingerprint,
    /// Its stamp.
    pub stamp: FileStamp,
}

impl FileStamp {
    pub(super) fn of(words: impl IntoIterator<Item = u64>) -> FileStamp {
        let mut hasher = KeyHasher::new(Secret::new(*b"rules as they be"));
        words.into_iter().for_each(|word| hasher.word(word));
        FileStamp(hasher.finish())
    }
}

impl ContentFingerprint {
    pub(super) fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> ContentFingerprint {
        let mut hasher = KeyHasher::new(Secret::new(*b"rules as written"));
        parts.into_iter().for_each(|part| hasher.part(part));
        ContentFingerprint(hasher.finish())
    }
}
