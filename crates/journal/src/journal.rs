//! The journal: appended to, synced, and replaced by a shorter file when most of its records are outdated.

use std::fmt;
use std::io;

use tollgate_core::QuotaBucket;

use crate::disk::{JournalDisk, JournalFile};
use crate::error::{JournalError, JournalErrorKind};
use crate::header::{FileHeader, Fingerprint, HEADER_BYTES};
use crate::load::{self, JournalReport};
use crate::record::{self, RECORD_BYTES};

/// A file with fewer outdated records than this is not replaced.
const OUTDATED_MIN: u64 = 4096;

/// Records encoded and written at once: bounds the buffer.
const CHUNK: usize = 4096;

/// What a journal needs to know of its process.
#[derive(Clone, Copy, Debug)]
pub struct JournalConfig {
    /// Of the secret that digests are made with.
    pub fingerprint: Fingerprint,
    /// A random number.
    pub salt: u64,
}

/// A journal, which is created on disk by its first record, or by [`claim`](Journal::claim).
pub struct Journal<D: JournalDisk> {
    disk: D,
    config: JournalConfig,
    current: Option<Version<D::File>>,
    /// The file that is to take the place of the current one. Everything appended goes to both.
    next: Option<Version<D::File>>,
    /// The file cannot be trusted: a sync failed, or records are damaged.
    needs_rewrite: bool,
    /// Why the last rewrite was given up, until it is reported.
    rewrite_failure: Option<io::Error>,
    buffer: Vec<u8>,
}

/// One file.
struct Version<F> {
    file: F,
    salt: u64,
    /// Bytes that were written in full.
    len: u64,
    /// A failed write may have left bytes behind `len`, which must be cut off before others are written.
    has_tail: bool,
}

impl<D: JournalDisk> Journal<D> {
    /// Opens the journal and calls `restore` with all records in their order: the last of a bucket counts. Cuts a torn
    /// tail off.
    pub fn open(
        disk: D,
        config: JournalConfig,
        restore: impl FnMut(&[QuotaBucket]),
    ) -> Result<(Journal<D>, JournalReport), JournalError> {
        let path = disk.path().to_owned();
        let mut journal = Journal {
            disk,
            config,
            current: None,
            next: None,
            needs_rewrite: false,
            rewrite_failure: None,
            buffer: Vec::new(),
        };
        match journal.load(restore) {
            Ok(report) => Ok((journal, report)),
            Err(kind) => Err(JournalError { path, kind }),
        }
    }

    fn load(&mut self, restore: impl FnMut(&[QuotaBucket])) -> Result<JournalReport, JournalErrorKind> {
        let Some(file) = self.disk.open().map_err(JournalErrorKind::of)? else {
            return Ok(JournalReport::default());
        };
        let mut header = [0; HEADER_BYTES];
        if file.read_at(&mut header, 0).map_err(JournalErrorKind::Io)? < HEADER_BYTES {
            return Err(JournalErrorKind::Emptied);
        }
        if FileHeader::decode(&header)?.fingerprint != self.config.fingerprint {
            return Err(JournalErrorKind::OtherSecret);
        }
        let loaded = load::load(&file, restore)?;
        let has_tail = loaded.report.torn_bytes > 0;
        let mut version = Version { file, salt: loaded.header.salt, len: loaded.len, has_tail };
        version.cut_tail().map_err(JournalErrorKind::Io)?;
        self.needs_rewrite = loaded.report.damaged > 0;
        self.current = Some(version);
        Ok(loaded.report)
    }

    /// Creates the file if there is none, so that no other process can: its first record would be too late for an error.
    pub fn claim(&mut self) -> Result<(), JournalError> {
        let created = if self.current.is_none() { self.create() } else { Ok(()) };
        created.map_err(|error| JournalError { path: self.disk.path().to_owned(), kind: JournalErrorKind::of(error) })
    }

    /// Appends records. After an error the call can be repeated: what was written in part is cut off first.
    pub fn append(&mut self, records: &[QuotaBucket]) -> io::Result<()> {
        if self.current.is_none() {
            self.create()?;
        }
        for chunk in records.chunks(CHUNK) {
            if let Some(current) = &mut self.current {
                current.append(chunk, &mut self.buffer)?;
            }
            if let Some(next) = &mut self.next
                && let Err(error) = next.append(chunk, &mut self.buffer)
            {
                self.give_up_rewrite(error);
            }
        }
        Ok(())
    }

    /// Makes everything durable that was appended. After an error the whole file is to be rewritten: the system may have
    /// dropped what it could not write, and would report a second attempt as a success.
    pub fn sync(&mut self) -> io::Result<()> {
        let synced = self.current.as_ref().map_or(Ok(()), |current| current.file.sync());
        self.needs_rewrite |= synced.is_err();
        synced
    }

    /// True if the file should be replaced: more than half of its records are outdated, given the number of `live`
    /// buckets, or it cannot be trusted.
    pub fn wants_rewrite(&self, live: u64) -> bool {
        let Some(current) = &self.current else { return false };
        let outdated = current.records().saturating_sub(live);
        self.needs_rewrite || (outdated > live && outdated > OUTDATED_MIN)
    }

    /// True if what was written last may not be durable although all syncs since have succeeded: only a rewrite helps.
    pub fn is_suspect(&self) -> bool {
        self.needs_rewrite
    }

    /// True between [`begin_rewrite`](Journal::begin_rewrite) and its end.
    pub fn is_rewriting(&self) -> bool {
        self.next.is_some()
    }

    /// Starts a file that is to take the place of this one. Copy all buckets into it, in as many steps as needed:
    /// everything that is appended in the meantime goes to both files.
    pub fn begin_rewrite(&mut self) -> io::Result<()> {
        self.next = None;
        let file = self.disk.create_next()?;
        self.next = Some(self.started(file)?);
        Ok(())
    }

    /// Copies buckets into the next file, as they are now, and syncs them: the end of the rewrite has little to sync.
    pub fn copy(&mut self, records: &[QuotaBucket]) -> io::Result<()> {
        if let Some(next) = &mut self.next {
            let mut chunks = records.chunks(CHUNK);
            let copied = chunks.try_for_each(|chunk| next.append(chunk, &mut self.buffer));
            if let Err(error) = copied.and_then(|()| next.file.sync()) {
                self.give_up_rewrite(error);
            }
        }
        self.rewrite_failure.take().map_or(Ok(()), Err)
    }

    /// Puts the next file in its place, after all buckets were copied.
    pub fn finish_rewrite(&mut self) -> io::Result<()> {
        if let Some(error) = self.rewrite_failure.take() {
            return Err(error);
        }
        let Some(next) = self.next.take() else { return Ok(()) };
        if let Err(error) = next.file.sync().and_then(|()| self.disk.replace()) {
            let _ = next.file.cut(0); // as in `give_up_rewrite`
            return Err(error);
        }
        self.current = Some(next);
        self.needs_rewrite = true; // until the directory is durable, too
        self.disk.sync_directory()?;
        self.needs_rewrite = false;
        Ok(())
    }

    /// Records in the file.
    pub fn records(&self) -> u64 {
        self.current.as_ref().map_or(0, Version::records)
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.current.as_ref().map_or(0, |current| current.len)
    }

    /// The file gets its name when its header is on the disk: a journal without a whole header was emptied later.
    fn create(&mut self) -> io::Result<()> {
        let file = self.disk.create_next()?;
        let version = self.started(file)?;
        version.file.sync()?;
        self.disk.install()?;
        self.current = Some(version);
        self.needs_rewrite = true; // until the directory is durable, too
        self.disk.sync_directory()?;
        self.needs_rewrite = false;
        Ok(())
    }

    /// The header in an empty file.
    fn started(&mut self, file: D::File) -> io::Result<Version<D::File>> {
        self.config.salt = self.config.salt.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let JournalConfig { fingerprint, salt } = self.config;
        file.cut(0)?;
        file.write_all_at(&FileHeader { fingerprint, salt }.encode(), 0)?;
        Ok(Version { file, salt, len: HEADER_BYTES as u64, has_tail: false })
    }

    /// Releases the space of the next file: the disk may be full because of it.
    fn give_up_rewrite(&mut self, error: io::Error) {
        if let Some(next) = self.next.take() {
            let _ = next.file.cut(0); // if that fails too, the next rewrite truncates it
        }
        self.rewrite_failure = Some(error);
    }
}

impl<F: JournalFile> Version<F> {
    fn append(&mut self, records: &[QuotaBucket], buffer: &mut Vec<u8>) -> io::Result<()> {
        self.cut_tail()?;
        buffer.clear();
        records.iter().for_each(|record| record::encode(record, self.salt, buffer));
        self.has_tail = true;
        self.file.write_all_at(buffer, self.len)?;
        self.has_tail = false;
        self.len += buffer.len() as u64;
        Ok(())
    }

    fn cut_tail(&mut self) -> io::Result<()> {
        if self.has_tail {
            self.file.cut(self.len)?;
            self.has_tail = false;
        }
        Ok(())
    }

    fn records(&self) -> u64 {
        self.len.saturating_sub(HEADER_BYTES as u64) / RECORD_BYTES as u64
    }
}

impl<D: JournalDisk> fmt::Debug for Journal<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("path", &self.disk.path()).field("records", &self.records()).finish()
    }
}
