//! The header of a file: what it is, and which secret its digests were made with.

use crate::checksum::checksum;
use crate::error::JournalErrorKind;
use crate::field::take;
use crate::record::RECORD_BYTES;

/// Identifies the secret behind the digests without revealing it.
pub type Fingerprint = [u8; 16];

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 64;

const MAGIC: [u8; 8] = *b"TGQUOTA\n";
const VERSION: u32 = 1;
const CHECKSUM_AT: usize = HEADER_BYTES - 4;

/// The header of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) fingerprint: Fingerprint,
    /// Differs from file to file and is part of every checksum: blocks of a deleted file are never valid records.
    pub(crate) salt: u64,
}

impl FileHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let fields = [
            MAGIC.as_slice(),
            &VERSION.to_le_bytes(),
            &(RECORD_BYTES as u32).to_le_bytes(),
            &self.fingerprint,
            &self.salt.to_le_bytes(),
        ];
        for (place, byte) in bytes.iter_mut().zip(fields.concat()) {
            *place = byte;
        }
        let (head, sum) = bytes.split_at_mut(CHECKSUM_AT);
        sum.copy_from_slice(&checksum(0, head).to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<FileHeader, JournalErrorKind> {
        let (head, sum) = bytes.split_at(CHECKSUM_AT);
        let mut fields = head;
        if take(&mut fields) != Some(MAGIC) {
            return Err(JournalErrorKind::NoJournal);
        }
        if sum != checksum(0, head).to_le_bytes() {
            return Err(JournalErrorKind::DamagedHeader);
        }
        let version = u32::from_le_bytes(take(&mut fields).unwrap_or_default());
        let size = u32::from_le_bytes(take(&mut fields).unwrap_or_default());
        if version != VERSION || size != RECORD_BYTES as u32 {
            return Err(JournalErrorKind::OtherVersion(version));
        }
        let fingerprint = take(&mut fields).unwrap_or_default();
        Ok(FileHeader { fingerprint, salt: u64::from_le_bytes(take(&mut fields).unwrap_or_default()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_written_and_any_flipped_bit_is_noticed() {
        let header = FileHeader { fingerprint: *b"sixteen bytes of", salt: 0x0123_4567_89ab_cdef };
        let bytes = header.encode();
        assert_eq!(FileHeader::decode(&bytes), Ok(header));
        for bit in 0..HEADER_BYTES * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(FileHeader::decode(&damaged).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = FileHeader { fingerprint: [7; 16], salt: 1 }.encode();
        bytes[8] = 2;
        let (head, sum) = bytes.split_at_mut(CHECKSUM_AT);
        sum.copy_from_slice(&checksum(0, head).to_le_bytes());
        assert_eq!(FileHeader::decode(&bytes), Err(JournalErrorKind::OtherVersion(2)));
    }
}
