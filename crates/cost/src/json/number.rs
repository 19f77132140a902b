//! The grammar of JSON numbers, and amounts from their text, in integers alone.

/// How far a number has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberState {
    /// After the sign.
    Minus,
    /// After a zero, which no digit follows.
    Zero,
    /// Within the whole part.
    Whole,
    /// After the point.
    Point,
    /// Within the fraction.
    Fraction,
    /// After `e`.
    Exponent,
    /// After the sign of the exponent.
    ExponentSign,
    /// Within the exponent.
    ExponentDigits,
}

impl NumberState {
    /// The state after a byte; `None` if the byte is no part of the number.
    pub(super) fn next(self, byte: u8) -> Option<NumberState> {
        use NumberState::*;
        Some(match (self, byte) {
            (Minus, b'0') => Zero,
            (Minus, b'1'..=b'9') | (Whole, b'0'..=b'9') => Whole,
            (Zero | Whole, b'.') => Point,
            (Point | Fraction, b'0'..=b'9') => Fraction,
            (Zero | Whole | Fraction, b'e' | b'E') => Exponent,
            (Exponent, b'+' | b'-') => ExponentSign,
            (Exponent | ExponentSign | ExponentDigits, b'0'..=b'9') => ExponentDigits,
            _ => return None,
        })
    }

    /// Whether a number may end here.
    pub(super) fn may_end(self) -> bool {
        matches!(self, Self::Zero | Self::Whole | Self::Fraction | Self::ExponentDigits)
    }
}

/// Exponents beyond this make every number either nothing or larger than any amount.
const EXPONENT_MAX: i64 = 64;

/// The number, rounded up and kept within 64 bits; `None` if it is negative.
pub(crate) fn amount(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.parse().unwrap_or(u64::MAX));
    }
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let negative = mantissa.starts_with('-');
    let (whole, fraction) = mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa, ""));
    let is_zero = whole.bytes().chain(fraction.bytes()).all(|byte| !matches!(byte, b'1'..=b'9'));
    match (is_zero, negative) {
        (true, _) => Some(0),
        (false, true) => None,
        (false, false) => Some(shifted(whole, fraction, exponent_of(exponent))),
    }
}

fn exponent_of(text: &str) -> i64 {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.trim_start_matches('+')),
    };
    sign * digits.parse().unwrap_or(EXPONENT_MAX).min(EXPONENT_MAX)
}

/// `whole.fraction` with the point moved to the right, rounded up.
fn shifted(whole: &str, fraction: &str, exponent: i64) -> u64 {
    let point = i64::try_from(whole.len()).unwrap_or(i64::MAX).saturating_add(exponent);
    let digits = whole.bytes().chain(fraction.bytes()).map(|byte| u64::from(byte.wrapping_sub(b'0')));
    let (mut value, mut place, mut rest) = (0u64, 0i64, false);
    for digit in digits {
        match place < point {
            true => value = value.saturating_mul(10).saturating_add(digit),
            false => rest |= digit > 0,
        }
        place += 1;
    }
    while place < point && value > 0 && value < u64::MAX {
        value = value.saturating_mul(10);
        place += 1;
    }
    value.saturating_add(u64::from(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_spelling_of_an_amount() {
        let cases = [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("42", Some(42)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", Some(u64::MAX)),
            ("100000000000000000000000000", Some(u64::MAX)),
            ("1e3", Some(1_000)),
            ("1E+3", Some(1_000)),
            ("1.5", Some(2)),
            ("1.0", Some(1)),
            ("12.5e1", Some(125)),
            ("1234e-2", Some(13)),
            ("1e-9", Some(1)),
            ("0e9999999999999999999999", Some(0)),
            ("0.0001e4", Some(1)),
            ("1e400", Some(u64::MAX)),
            ("1e-400", Some(1)),
            ("-1", None),
            ("-0.5", None),
        ];
        for (text, wanted) in cases {
            assert_eq!(amount(text), wanted, "{text}");
        }
    }
}
