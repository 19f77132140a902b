//! CRC-32C, which detects every burst of up to 32 bits and, at the length of a record, any five flipped bits.

/// The reversed polynomial of Castagnoli.
const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = table();

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { rest >> 1 ^ POLYNOMIAL } else { rest >> 1 };
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
}

/// The checksum of `bytes` after `seed`, which makes the records of one file differ from those of any other.
pub(crate) fn checksum(seed: u64, bytes: &[u8]) -> u32 {
    let all = seed.to_le_bytes().into_iter().chain(bytes.iter().copied());
    !all.fold(u32::MAX, step)
}

#[expect(clippy::indexing_slicing, reason = "a byte is below 256")]
fn step(rest: u32, byte: u8) -> u32 {
    rest >> 8 ^ TABLE[usize::from(rest as u8 ^ byte)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_check_value_is_met() {
        assert_eq!(!b"123456789".iter().copied().fold(u32::MAX, step), 0xe306_9283);
    }

    #[test]
    fn zeros_have_no_valid_checksum_and_seeds_differ() {
        assert_ne!(checksum(0, &[0; 52]), 0);
        assert_ne!(checksum(1, b"record"), checksum(2, b"record"));
    }
}
