//! Appends JSON to a buffer.

/// Appends a whole number.
#[inline]
pub(super) fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a number, or `null`.
#[inline]
pub(super) fn number_or_null(out: &mut Vec<u8>, value: Option<u64>) {
    match value {
        Some(value) => number(out, value),
        None => out.extend_from_slice(b"null"),
    }
}

/// Appends a string, quotes included.
#[inline]
pub(super) fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escaped(out, text);
    out.push(b'"');
}

/// Appends the content of a string. Escapes all control characters, more than JSON demands: responses end up in logs
/// and terminals.
#[inline]
pub(super) fn escaped(out: &mut Vec<u8>, text: &str) {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    match text.bytes().all(plain) {
        true => out.extend_from_slice(text.as_bytes()),
        false => text.chars().for_each(|letter| character(out, letter)),
    }
}

fn character(out: &mut Vec<u8>, letter: char) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match letter {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        letter if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') => {
            out.extend_from_slice(b"\\u");
            let code = u32::from(letter);
            let digits = [12, 8, 4, 0].into_iter().filter_map(|shift| HEX.get((code >> shift) as usize & 15));
            out.extend(digits);
        }
        letter => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let every: String = (0..0x3000).filter_map(char::from_u32).chain("🦀\u{10ffff}".chars()).collect();
        for text in ["", "plain", "a\"b\\c", "café\n\t\r\u{7f}\u{85}\u{2028}", &every] {
            let mut out = Vec::new();
            string(&mut out, text);
            assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
            let written = String::from_utf8(out).unwrap();
            assert!(!written.chars().any(char::is_control), "{written:?}");
        }
    }
}
