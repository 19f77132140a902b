//! Parses `grpc-timeout`.

use std::time::Duration;

use http::HeaderMap;

/// Header name.
const NAME: &str = "grpc-timeout";
/// Maximum number of digits.
const DIGITS_MAX: usize = 8;

/// The caller's timeout; `None` without the header. A malformed value is an error: to ignore it would silently drop a
/// deadline that the caller relies on.
pub(super) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, InvalidTimeout> {
    let Some(value) = headers.get(NAME) else { return Ok(None) };
    parse(value.as_bytes()).map(Some).ok_or(InvalidTimeout)
}

/// Malformed `grpc-timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidTimeout;

fn parse(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    if digits.is_empty() || digits.len() > DIGITS_MAX || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_every_unit_and_rejects_malformed_values() {
        let hours = Duration::from_secs(99_999_999 * 3600);
        let read = [
            ("20m", Duration::from_millis(20)),
            ("99999999H", hours),
            ("2M", Duration::from_secs(120)),
            ("007S", Duration::from_secs(7)),
            ("5u", Duration::from_micros(5)),
            ("0n", Duration::ZERO),
        ];
        for (text, expected) in read {
            assert_eq!(parse(text.as_bytes()), Some(expected), "{text}");
        }
        for text in ["", "m", "20", "-1m", "+1m", "1.5S", "123456789m", "20 m", "20ms", "\u{661}m", "20x"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
