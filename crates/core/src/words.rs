//! Bytes as words of eight, for hash functions.

/// The bytes after the last whole word, as a little-endian number padded with zeros; 0 if there are none.
///
/// Reads whole words that overlap what was read before: a loop over single bytes takes longer than hashing a short key.
#[inline]
pub fn last_word(bytes: &[u8]) -> u64 {
    let rest = bytes.len() % 8;
    if rest == 0 {
        return 0;
    }
    if let Some(last) = bytes.last_chunk::<8>() {
        return u64::from_le_bytes(*last) >> (64 - 8 * rest);
    }
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (8 * (rest - 4))
        }
        _ => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_padded_rest_for_every_length() {
        let bytes: Vec<u8> = (1..=40).map(|byte| byte * 6).collect();
        for length in 0..=bytes.len() {
            let (_, rest) = bytes[..length].as_chunks::<8>();
            let mut padded = [0; 8];
            padded[..rest.len()].copy_from_slice(rest);
            assert_eq!(last_word(&bytes[..length]), u64::from_le_bytes(padded), "{length} bytes");
        }
    }
}
