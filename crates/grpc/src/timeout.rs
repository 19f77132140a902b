//! How long a caller waits, as it says itself: `grpc-timeout`.

use std::time::Duration;

use http::HeaderMap;

/// The name of the field.
const NAME: &str = "grpc-timeout";
/// The most digits there may be.
const DIGITS_MAX: usize = 8;

/// How long the caller waits; `None` if it does not say. `Err` for what is no time: whoever sent it relies on something
/// that would not happen.
pub(super) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Malformed> {
    let Some(value) = headers.get(NAME) else { return Ok(None) };
    parse(value.as_bytes()).map(Some).ok_or(Malformed)
}

/// A `grpc-timeout` that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

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
    fn reads_every_unit_and_refuses_the_rest() {
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
