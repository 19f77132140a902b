//! Text as YAML: plain text unchanged, other text in double quotes or as a literal block.

use crate::yaml::is_blank;

/// A key: plain if it is a simple name.
pub(super) fn key(text: &str) -> String {
    let simple = text.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
        && !is_blank(text);
    if simple { text.to_owned() } else { quoted(text) }
}

/// A value on one line.
pub(super) fn inline(text: &str, is_quoted: bool) -> String {
    if is_quoted || text.contains(['\n', '\r']) { quoted(text) } else { text.to_owned() }
}

/// The header and lines of a literal block, if the text can be one.
pub(super) fn literal(text: &str) -> Option<(&'static str, Vec<&str>)> {
    let (header, body) = match text.strip_suffix('\n') {
        Some(body) => ("|", body),
        None => ("|-", text),
    };
    let odd = |letter: char| letter != '\n' && needs_escape(letter);
    let lines: Vec<&str> = body.split('\n').collect();
    let first_is_text = lines.first().is_some_and(|line| !line.is_empty() && !line.starts_with([' ', '\t']));
    let ends_in_text = lines.last().is_some_and(|line| !line.is_empty());
    let clean = lines.iter().all(|line| !line.ends_with([' ', '\t']));
    (text.contains('\n') && first_is_text && ends_in_text && clean && !text.contains(odd)).then_some((header, lines))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if needs_escape(letter) && u32::from(letter) <= 0xff => {
                out.push_str(&format!("\\x{:02x}", u32::from(letter)))
            }
            _ if needs_escape(letter) => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            _ => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// Control characters, line separators, the byte order mark and non-characters; all are below U+10000.
fn needs_escape(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}
