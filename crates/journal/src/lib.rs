//! The journal of quotas: the usage of buckets in an append-only file, so that it survives the process.
//!
//! | file | what |
//! |---|---|
//! | `journal` | appends, syncs, and replaces a file that has grown to more than twice the live state |
//! | `load` | reads a file back, cuts a torn tail off and skips damaged records |
//! | `header`, `record` | the format: 64 bytes of header, then records of 56 bytes, each with a checksum |
//! | `disk` | what is asked of a file system, and the real one |
//!
//! Records have one size, so a damaged one costs itself and no other. The last record of a bucket counts. Callers decide
//! when to write and when to sync: one sync covers everything that was appended before it.

mod checksum;
mod disk;
mod error;
mod field;
mod header;
mod journal;
mod load;
mod record;

pub use disk::{FileDisk, JournalDisk, JournalFile};
pub use error::{JournalError, JournalErrorKind};
pub use header::Fingerprint;
pub use journal::{Journal, JournalConfig};
pub use load::JournalReport;
pub use record::RECORD_BYTES;
