//! Percent-encoding, both ways.

/// What a plus sign stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plus {
    /// Itself, as in paths.
    IsPlus,
    /// A space, as in queries.
    IsSpace,
}

/// The text behind percent signs; `None` if it is not UTF-8, if a sign has no two digits behind it, or for a NUL, which
/// no database takes for text.
pub fn decode(text: &str, plus: Plus) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                u8::try_from(digit(rest.next())? << 4 | digit(rest.next())?).ok()?
            }
            b'+' if plus == Plus::IsSpace => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// Text as a segment of a path.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b':' => {
                encoded.push(char::from(byte))
            }
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_again() {
        for text in ["", "rule-7f3a", "key:a/b", "50% & more?#", "é+ü", "a b\u{1f980}"] {
            assert_eq!(decode(&encode(text), Plus::IsPlus).as_deref(), Some(text));
        }
        assert_eq!(encode("key:a/b c"), "key:a%2Fb%20c");
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for text in ["%", "%4", "%zz", "%ff", "%00", "a%00b", "%e9", "%+1"] {
            assert_eq!(decode(text, Plus::IsSpace), None, "{text}");
        }
        assert_eq!(decode("a+b%2B", Plus::IsSpace).as_deref(), Some("a b+"));
        assert_eq!(decode("a+b%2b", Plus::IsPlus).as_deref(), Some("a+b+"));
    }
}
