//! The numbers of a call in one argument: unsigned little-endian integers, which cannot be negative, fractional or NaN.
//!
//! Lua's numbers are doubles. So times are sent as seconds (five bytes) and nanoseconds (four), counts as two halves of
//! 32 bits.

use smallvec::SmallVec;

/// Arguments up to this size, which is six charges, need no allocation.
const INLINE_BYTES: usize = 256;

/// Nanoseconds per second.
pub(super) const SECOND: u64 = 1_000_000_000;

/// An argument being encoded.
#[derive(Debug, Default)]
pub(super) struct Blob(SmallVec<[u8; INLINE_BYTES]>);

impl Blob {
    pub(super) fn with_capacity(bytes: usize) -> Blob {
        Blob(SmallVec::with_capacity(bytes))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn short(&mut self, number: u16) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// A point in time or a span.
    pub(super) fn nanos(&mut self, nanos: u64) {
        self.wide_nanos(u128::from(nanos));
    }

    /// A sum of two spans, which may exceed 64 bits; it must stay below 2^40 seconds.
    pub(super) fn wide_nanos(&mut self, nanos: u128) {
        let (seconds, rest) = (nanos / u128::from(SECOND), nanos % u128::from(SECOND));
        let [a, b, c, d, e, ..] = (seconds as u64).to_le_bytes();
        self.0.extend_from_slice(&[a, b, c, d, e]);
        self.0.extend_from_slice(&(rest as u32).to_le_bytes());
    }

    /// A count, high half first.
    pub(super) fn count(&mut self, count: u64) {
        self.0.extend_from_slice(&((count >> 32) as u32).to_le_bytes());
        self.0.extend_from_slice(&(count as u32).to_le_bytes());
    }

    /// Raw bytes.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}
