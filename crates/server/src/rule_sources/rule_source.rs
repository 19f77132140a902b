//! What rules are read from, as the task that follows it sees it.

use std::path::Path;

use tollgate_core::{Digest, KeyHasher, Secret};

use super::error::{RuleSourceError, Unreadable};

/// Something on disk that says rules: cheap to look at, and read once it looks different. All of it may block.
pub trait RuleSource: Send + Sync + 'static {
    /// Its content as it was read.
    type Data: Send;
    /// What the content says.
    type Compiled: Send;

    /// Where it is, for messages.
    fn path(&self) -> &Path;

    /// Tells it from what was there before without reading it, or why it cannot be read. Links are followed anew.
    fn stamp(&self) -> Result<FileStamp, Unreadable>;

    /// All of it, as it was at one moment.
    fn read(&self) -> Result<SourceContent<Self::Data>, Unreadable>;

    /// What it says.
    fn compile(&self, data: &Self::Data) -> Result<Self::Compiled, RuleSourceError>;

    /// Whether the place is there and holds nothing. Where rules came from it before, that is a mistake.
    fn is_empty(_: &Self::Data) -> bool {
        false
    }

    /// How many rules that is.
    fn rules(written: &Self::Compiled) -> usize;
}

/// Tells what is there from what was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp(pub(super) Digest);

/// A digest of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentFingerprint(pub(super) Digest);

/// Tells one content from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentMark {
    pub(super) fingerprint: ContentFingerprint,
    pub(super) stamp: FileStamp,
    pub(super) rules: usize,
}

/// What was read.
#[derive(Debug)]
pub struct SourceContent<D> {
    /// The content.
    pub data: D,
    /// Its digest.
    pub fingerprint: ContentFingerprint,
    /// What a look would have seen.
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
