//! Hash slots of a cluster.

/// Slots of a cluster.
pub const SLOTS: u16 = 16_384;

/// The slot of a hash tag: CRC-16/XMODEM, as Redis Cluster defines it.
pub fn slot_of(tag: &[u8]) -> u16 {
    let crc = tag.iter().fold(0u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| if crc & 0x8000 != 0 { crc << 1 ^ 0x1021 } else { crc << 1 })
    });
    crc % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis_cluster() {
        assert_eq!(slot_of(b"123456789"), 0x31c3);
        assert_eq!(slot_of(b"foo"), 12_182);
    }
}
