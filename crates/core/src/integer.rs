//! Integer operations shared by the algorithms: aligning a window and dividing a 128-bit product.

use crate::{Span, Time};

/// The end of the window of length `window` that contains `now`; windows start at `offset` and every `window` after.
pub(crate) fn window_end(now: Time, window: Span, offset: Span) -> Time {
    let (w, off) = (window.nanos(), offset.nanos() % window.nanos());
    let elapsed = (now.nanos() % w + w - off) % w; // w ≤ 2^63, so the sum fits
    now.after(Span::from_nanos(w - elapsed))
}

/// `numerator / denominator` rounded down. Most products fit 64 bits, where division is ten times cheaper.
pub(crate) fn div_floor(numerator: u128, denominator: u64) -> u64 {
    match u64::try_from(numerator) {
        Ok(small) => small / denominator,
        Err(_) => u64::try_from(numerator / u128::from(denominator)).unwrap_or(u64::MAX),
    }
}

/// `numerator / denominator` rounded up.
pub(crate) fn div_ceil(numerator: u128, denominator: u64) -> u64 {
    match u64::try_from(numerator) {
        Ok(small) => small.div_ceil(denominator),
        Err(_) => u64::try_from(numerator.div_ceil(u128::from(denominator))).unwrap_or(u64::MAX),
    }
}

/// `a · b` in 128 bits.
pub(crate) fn product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_align_to_their_offset() {
        let end = |now, w, off| window_end(Time::from_nanos(now), Span::from_nanos(w), Span::from_nanos(off)).nanos();
        assert_eq!(end(0, 60, 0), 60);
        assert_eq!(end(59, 60, 0), 60);
        assert_eq!(end(60, 60, 0), 120);
        assert_eq!(end(0, 60, 10), 10);
        assert_eq!(end(10, 60, 70), 70);
        assert_eq!(end(u64::MAX, i64::MAX as u64, 0), u64::MAX);
    }
}
