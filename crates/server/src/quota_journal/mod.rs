//! Durable quotas of a store in memory: restored from a journal at the start, written to it while serving.
//!
//! | file | what |
//! |---|---|
//! | `files` | where journal and secret lie |
//! | `open` | reads the journal into the store, before anything is served |
//! | `flush` | one flush: what changed is appended and synced, a long file is replaced step by step |
//! | `writer` | the thread that flushes four times a second, and once more at the end |
//! | `metrics` | its metrics |
//!
//! Files are created at the start of a node that has quotas, else by the first usage of one: a node without quotas leaves
//! no trace.

mod files;
mod flush;
mod metrics;
mod open;
mod writer;

pub(crate) use self::files::QuotaFiles;
pub(crate) use self::metrics::QuotaJournalMetrics;
pub(crate) use self::open::OpenedQuotaJournal;
pub(crate) use self::writer::QuotaJournalWriter;
