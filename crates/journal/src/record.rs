//! One record: a bucket, its usage and its owner, with a checksum.

use tollgate_core::{Digest, QuotaBucket, QuotaUse, Span, Time};

use crate::checksum::checksum;
use crate::field::take;

/// Bytes of a record.
pub const RECORD_BYTES: usize = 56;

const CHECKSUM_AT: usize = RECORD_BYTES - 4;

/// Appends the record of `bucket`.
pub(crate) fn encode(record: &QuotaBucket, salt: u64, bytes: &mut Vec<u8>) {
    let QuotaBucket { bucket: Digest([high, low]), usage, owner } = record;
    let start = bytes.len();
    let words = [*high, *low, usage.end().nanos(), usage.used(), usage.carried(), usage.keep().nanos()];
    words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes.extend_from_slice(&owner.to_le_bytes());
    let sum = checksum(salt, bytes.get(start..).unwrap_or_default());
    bytes.extend_from_slice(&sum.to_le_bytes());
}

/// The record in these bytes; `None` if they are damaged.
pub(crate) fn decode(bytes: &[u8; RECORD_BYTES], salt: u64) -> Option<QuotaBucket> {
    let (mut fields, sum) = bytes.split_at(CHECKSUM_AT);
    if sum != checksum(salt, fields).to_le_bytes() {
        return None;
    }
    let mut word = || take(&mut fields).map(u64::from_le_bytes);
    let bucket = Digest([word()?, word()?]);
    let end = Time::from_nanos(word()?);
    let (used, carried, keep) = (word()?, word()?, Span::from_nanos(word()?));
    let owner = u32::from_le_bytes(take(&mut fields)?);
    Some(QuotaBucket { bucket, usage: QuotaUse::new(end, used, carried, keep), owner })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_written_and_any_flipped_bit_is_noticed() {
        let usage = QuotaUse::new(Time::from_secs(1_800_000_000), u64::MAX, 12_345, Span::from_secs(31 * 86_400));
        let record = QuotaBucket { bucket: Digest([u64::MAX, 2]), usage, owner: 0xdead_beef };
        let mut bytes = Vec::new();
        encode(&record, 99, &mut bytes);
        let bytes: [u8; RECORD_BYTES] = bytes.try_into().unwrap();
        assert_eq!(decode(&bytes, 99), Some(record));
        assert_eq!(decode(&bytes, 98), None, "of another file");
        for bit in 0..RECORD_BYTES * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&damaged, 99), None, "bit {bit}");
        }
    }
}
