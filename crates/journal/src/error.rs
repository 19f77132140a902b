//! Why a journal cannot be opened.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a journal cannot be opened, and what an operator can do about it.
#[derive(Debug)]
pub struct JournalError {
    /// The file.
    pub path: PathBuf,
    /// The cause.
    pub kind: JournalErrorKind,
}

/// The cause of a [`JournalError`].
#[derive(Debug)]
pub enum JournalErrorKind {
    /// The system refused.
    Io(io::Error),
    /// Another process has the journal open.
    InUse,
    /// The file has no whole header: it was emptied after it was created.
    Emptied,
    /// The file is something else.
    NoJournal,
    /// The header is damaged, without which no record can be verified.
    DamagedHeader,
    /// Another version of the format, with this number.
    OtherVersion(u32),
    /// The digests were made with another secret: no bucket would be found.
    OtherSecret,
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.path.display();
        match &self.kind {
            JournalErrorKind::Io(error) => write!(f, "cannot open the quota journal {name}: {error}"),
            JournalErrorKind::InUse => write!(
                f,
                "the quota journal {name} is in use by another process: end that one, or give this one a state_dir or \
                 db of its own, or `durable: off`"
            ),
            JournalErrorKind::Emptied => write!(
                f,
                "the quota journal {name} was emptied: restore the file from a backup, or remove it, and all quotas \
                 start unused"
            ),
            JournalErrorKind::NoJournal => write!(f, "{name} is not a quota journal: move it away"),
            JournalErrorKind::DamagedHeader => write!(
                f,
                "the header of the quota journal {name} is damaged: restore the file from a backup, or move it away, \
                 and all quotas start unused"
            ),
            JournalErrorKind::OtherVersion(version) => write!(
                f,
                "the quota journal {name} has version {version} of the format, which this version of Tollgate cannot \
                 read: run the one that wrote it"
            ),
            JournalErrorKind::OtherSecret => write!(
                f,
                "the quota journal {name} was written with another secret: restore the secret_file of then (or the \
                 file *.secret beside the journal), or move the journal away, and all quotas start unused"
            ),
        }
    }
}

impl std::error::Error for JournalError {}

impl JournalErrorKind {
    /// A journal that another process has, or has just created.
    pub(crate) fn of(error: io::Error) -> JournalErrorKind {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::AlreadyExists => JournalErrorKind::InUse,
            _ => JournalErrorKind::Io(error),
        }
    }
}

impl PartialEq for JournalErrorKind {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (JournalErrorKind::Io(one), JournalErrorKind::Io(other)) => one.kind() == other.kind(),
            (JournalErrorKind::OtherVersion(one), JournalErrorKind::OtherVersion(other)) => one == other,
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        }
    }
}
