//! The content of a text, key or number, read byte by byte.

use super::utf8::Utf8Check;

/// Longest content that is kept; of longer ones, the length.
const CAPTURED_MAX: usize = 256;

/// A text that is being read.
#[derive(Debug, Default)]
pub(super) struct TextReader {
    /// The beginning of the content.
    captured: Vec<u8>,
    /// Bytes of the content, without escapes.
    length: u64,
    /// What the last byte that was taken alone added: of an escape, the character at its end, perhaps behind the
    /// replacement of half a pair.
    added: [u8; 8],
    added_bytes: usize,
    /// Whether what is not Unicode is replaced, as most parsers do, or refused.
    is_tolerant: bool,
    utf8: Utf8Check,
    escape: Escape,
    /// The first half of an escaped character beyond U+FFFF.
    high_surrogate: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Escape {
    /// Not within one.
    #[default]
    None,
    /// After the backslash.
    Letter,
    /// Within the digits of `\u`: how many are left, and those before them.
    Unicode { left: u8, code: u32 },
}

/// What a byte is to a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextByte {
    /// A part of it.
    Part,
    /// The quote at its end.
    End,
    /// It cannot stand here.
    Fault,
}

/// The bytes of U+FFFD, which stands for what is not Unicode.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

impl TextReader {
    /// A reader of texts in which anything may stand for a character.
    pub(super) fn tolerant() -> TextReader {
        TextReader { is_tolerant: true, ..TextReader::default() }
    }

    /// Starts with no content. What was read before was complete.
    pub(super) fn start(&mut self) {
        self.captured.clear();
        self.length = 0;
    }

    /// Bytes of the content, without escapes.
    pub(super) fn bytes(&self) -> u64 {
        self.length
    }

    /// The content; `None` if it is longer than what is kept.
    pub(super) fn content(&self) -> Option<&str> {
        let is_whole = self.length == self.captured.len() as u64;
        std::str::from_utf8(&self.captured).ok().filter(|_| is_whole)
    }

    /// What the last [`take`](TextReader::take) added.
    pub(super) fn added(&self) -> &[u8] {
        self.added.get(..self.added_bytes).unwrap_or_default()
    }

    /// Adds to the content.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        if self.length == self.captured.len() as u64 {
            let room = CAPTURED_MAX.saturating_sub(self.captured.len());
            self.captured.extend_from_slice(bytes.get(..bytes.len().min(room)).unwrap_or_default());
        }
        self.length += bytes.len() as u64;
        let end = self.added_bytes.saturating_add(bytes.len());
        if let Some(added) = self.added.get_mut(self.added_bytes..end) {
            added.copy_from_slice(bytes);
            self.added_bytes = end;
        }
    }

    /// Takes what needs no look at the start of `bytes`, plain ASCII at least; how much that is.
    pub(super) fn take_plain(&mut self, bytes: &[u8]) -> usize {
        if !self.utf8.is_between() || self.high_surrogate.is_some() || self.escape != Escape::None {
            return 0;
        }
        let highest = if self.is_tolerant { 0xff } else { 0x7f };
        let is_plain = |byte: &u8| (0x20..=highest).contains(byte) && !matches!(byte, b'"' | b'\\');
        let length = bytes.iter().position(|byte| !is_plain(byte)).unwrap_or(bytes.len());
        self.added_bytes = self.added.len();
        self.add(bytes.get(..length).unwrap_or_default());
        length
    }

    /// Takes one byte.
    pub(super) fn take(&mut self, byte: u8) -> TextByte {
        self.added_bytes = 0;
        if self.is_tolerant && self.escape == Escape::None && byte != b'\\' {
            self.replace_half();
        }
        let fits = match self.escape {
            Escape::Letter => self.escaped(byte),
            Escape::Unicode { left, code } => self.unicode(byte, left, code),
            // The second half must follow at once.
            Escape::None if self.high_surrogate.is_some() && byte != b'\\' => false,
            Escape::None if self.is_tolerant && byte >= 0x80 => {
                self.add(&[byte]);
                true
            }
            Escape::None if !self.utf8.is_between() || byte >= 0x80 => {
                self.add(&[byte]);
                self.utf8.accept(byte)
            }
            Escape::None => match byte {
                b'"' => return TextByte::End,
                b'\\' => {
                    self.escape = Escape::Letter;
                    true
                }
                _ => {
                    self.add(&[byte]);
                    byte >= 0x20
                }
            },
        };
        if fits { TextByte::Part } else { TextByte::Fault }
    }

    /// Adds what stands for the first half of a pair whose second half does not follow.
    fn replace_half(&mut self) {
        if self.high_surrogate.take().is_some() {
            self.add(REPLACEMENT);
        }
    }

    fn escaped(&mut self, byte: u8) -> bool {
        if byte == b'u' {
            self.escape = Escape::Unicode { left: 4, code: 0 };
            return true;
        }
        if self.is_tolerant {
            self.replace_half();
        }
        let letter = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            _ => return false,
        };
        self.escape = Escape::None;
        self.add(&[letter]);
        self.high_surrogate.is_none()
    }

    fn unicode(&mut self, byte: u8, left: u8, code: u32) -> bool {
        let Some(digit) = char::from(byte).to_digit(16) else { return false };
        let code = code * 16 + digit;
        if left > 1 {
            self.escape = Escape::Unicode { left: left - 1, code };
            return true;
        }
        self.escape = Escape::None;
        if self.is_tolerant && !matches!(code, 0xdc00..=0xdfff) {
            self.replace_half();
        }
        let code = match (self.high_surrogate.take(), code) {
            (None, 0xd800..=0xdbff) => {
                self.high_surrogate = Some(code);
                return true;
            }
            (Some(high), 0xdc00..=0xdfff) => 0x1_0000 + ((high - 0xd800) << 10) + (code - 0xdc00),
            (None, _) => code,
            (Some(_), _) => return false,
        };
        let letter = char::from_u32(code).or(self.is_tolerant.then_some(char::REPLACEMENT_CHARACTER));
        if let Some(letter) = letter {
            self.add(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
        letter.is_some()
    }
}
