//! Reads a file back.

use std::io;

use tollgate_core::QuotaBucket;

use crate::disk::JournalFile;
use crate::error::JournalErrorKind;
use crate::header::{FileHeader, HEADER_BYTES};
use crate::record::{self, RECORD_BYTES};

/// Records that are read and handed on together.
const BATCH: usize = 4096;

/// What a start found in the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalReport {
    /// Valid records, several of some buckets.
    pub records: u64,
    /// Damaged records before valid ones: the usage of as many buckets may be too low.
    pub damaged: u64,
    /// Bytes of the end that were cut off, because the last write was not complete.
    pub torn_bytes: u64,
}

/// The readable part of a file.
pub(crate) struct LoadedFile {
    pub(crate) header: FileHeader,
    /// Bytes up to the end of the last valid record.
    pub(crate) len: u64,
    pub(crate) report: JournalReport,
}

/// Reads the header and all records.
pub(crate) fn load(
    file: &impl JournalFile,
    mut restore: impl FnMut(&[QuotaBucket]),
) -> Result<LoadedFile, JournalErrorKind> {
    let mut header = [0; HEADER_BYTES];
    if read_full(file, &mut header, 0)? < HEADER_BYTES {
        return Err(JournalErrorKind::Emptied);
    }
    let header = FileHeader::decode(&header)?;
    let mut loaded = LoadedFile { header, len: HEADER_BYTES as u64, report: JournalReport::default() };
    let (mut bytes, mut batch) = (vec![0; BATCH * RECORD_BYTES], Vec::with_capacity(BATCH));
    let (mut offset, mut invalid) = (loaded.len, 0);
    loop {
        let read = read_full(file, &mut bytes, offset)?;
        let (records, rest) = bytes.get(..read).unwrap_or_default().as_chunks::<RECORD_BYTES>();
        for record in records {
            offset += RECORD_BYTES as u64;
            match record::decode(record, header.salt) {
                Some(record) => {
                    batch.push(record);
                    loaded.report.damaged += std::mem::take(&mut invalid);
                    loaded.len = offset;
                }
                None => invalid += 1,
            }
        }
        loaded.report.records += batch.len() as u64;
        restore(&batch);
        batch.clear();
        if read < bytes.len() {
            loaded.report.torn_bytes = offset + rest.len() as u64 - loaded.len;
            return Ok(loaded);
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn read_full(file: &impl JournalFile, bytes: &mut [u8], offset: u64) -> Result<usize, JournalErrorKind> {
    let mut read = 0;
    while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(JournalErrorKind::Io(error)),
        }
    }
    Ok(read)
}
