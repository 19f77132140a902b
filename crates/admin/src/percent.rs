//! Percent-encoding of path segments and query parameters.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The meaning of a plus sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plus {
    /// Itself, as in paths.
    IsPlus,
    /// A space, as in queries.
    IsSpace,
}

/// Characters to encode in a path segment: all but the unreserved ones and the colon of client keys.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');

/// Decodes a text; `None` if it is not UTF-8, if a percent sign is not followed by two hexadecimal digits (which
/// `percent_encoding` would leave as it is), or for a NUL, which databases reject.
pub fn decode(text: &str, plus: Plus) -> Option<String> {
    let is_escape =
        |rest: &str| rest.as_bytes().first_chunk::<2>().is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    let spaced = if plus == Plus::IsSpace { text.replace('+', " ") } else { text.to_owned() };
    let decoded = percent_decode_str(&spaced).decode_utf8().ok()?;
    (!decoded.contains('\0')).then(|| decoded.into_owned())
}

/// Encodes a text as a path segment.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_reverses_encoding() {
        for text in ["", "rule-7f3a", "key:a/b", "50% & more?#", "é+ü", "a b\u{1f980}"] {
            assert_eq!(decode(&encode(text), Plus::IsPlus).as_deref(), Some(text));
        }
        assert_eq!(encode("key:a/b c"), "key:a%2Fb%20c");
        assert_eq!(encode("-_.~:!é%"), "-_.~:%21%C3%A9%25");
    }

    #[test]
    fn malformed_encodings_are_refused() {
        for text in ["%", "%4", "%zz", "%ff", "%00", "a%00b", "%e9", "%+1", "%%41", "%4%31", "a%2é"] {
            assert_eq!(decode(text, Plus::IsSpace), None, "{text}");
        }
        assert_eq!(decode("a+b%2B", Plus::IsSpace).as_deref(), Some("a b+"));
        assert_eq!(decode("a+b%2b", Plus::IsPlus).as_deref(), Some("a+b+"));
    }
}
