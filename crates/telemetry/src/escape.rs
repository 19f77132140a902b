//! Escapes characters in untrusted text that could move the cursor, end a line or hide what follows.

use std::fmt::{self, Write};

/// Characters that are never logged raw: control characters, and those that break lines or change text direction.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Writes text with hidden characters as `\u{1b}`.
pub(super) struct EscapingWriter<W>(pub(super) W);

impl<W: Write> Write for EscapingWriter<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, letter)) = rest.char_indices().find(|(_, letter)| is_hidden(*letter)) {
            self.0.write_str(rest.get(..at).unwrap_or_default())?;
            write!(self.0, "{}", letter.escape_default())?;
            rest = rest.get(at + letter.len_utf8()..).unwrap_or_default();
        }
        self.0.write_str(rest)
    }
}

/// Appends a JSON string, in its quotes.
pub fn json_string(line: &mut String, text: &str) {
    line.push('"');
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\') {
        line.push_str(text); // nearly always
        line.push('"');
        return;
    }
    for letter in text.chars() {
        match letter {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            // All hidden characters lie in the first plane: four digits are enough.
            _ if is_hidden(letter) => write!(line, "\\u{:04x}", u32::from(letter)).unwrap_or_default(),
            _ => line.push(letter),
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    const NASTY: &str = "a\u{1b}[31m\r\n\0\u{7f}\u{9b}\u{202e}\"\\é";

    #[test]
    fn hidden_characters_are_escaped() {
        let mut shown = String::new();
        EscapingWriter(&mut shown).write_str(NASTY).unwrap();
        assert_eq!(shown, "a\\u{1b}[31m\\r\\n\\u{0}\\u{7f}\\u{9b}\\u{202e}\"\\é");
    }

    #[test]
    fn json_reads_back_as_it_was_and_has_no_control_byte() {
        let mut line = String::new();
        json_string(&mut line, NASTY);
        assert_eq!(line, "\"a\\u001b[31m\\r\\n\\u0000\\u007f\\u009b\\u202e\\\"\\\\é\"");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), NASTY);
    }
}
