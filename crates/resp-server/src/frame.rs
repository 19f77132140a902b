//! Commands out of bytes: RESP arrays of bulk strings, or inline lines, wherever they were cut.
//!
//! Nothing is copied: an argument is a place in the read buffer (of an inline command, which may hold escapes, a place
//! in a line put together here). Nothing is looked at twice: what a command that is not all there has told so far is
//! remembered, so a large one that arrives byte by byte costs as much as one that arrives whole. And nothing is believed:
//! room is made for what has come, never for what was announced.

use smallvec::SmallVec;

use super::inline;

/// What a command may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// Most elements of a command, its name included.
    pub elements: usize,
    /// Longest of them.
    pub bulk: usize,
    /// Longest inline command.
    pub inline: usize,
    /// Longest command on the wire.
    pub command: usize,
}

impl FrameLimits {
    /// For callers who gave the password, or need none.
    pub const KNOWN: FrameLimits = FrameLimits { elements: 64, bulk: 64 << 10, inline: 4 << 10, command: 1 << 20 };
    /// For callers who have yet to give it: enough for that.
    pub const STRANGER: FrameLimits =
        FrameLimits { elements: 10, bulk: 16 << 10, command: 20 << 10, ..FrameLimits::KNOWN };
}

/// Why bytes are no command. The connection ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The number of elements is none, or too large.
    Multibulk,
    /// The length of an element is none, or too large.
    Bulk,
    /// An element begins with this byte.
    NoBulk(u8),
    /// A value of this type stands where a command should: only arrays and lines of words are commands.
    NoCommand(u8),
    /// An element does not end where it should.
    NoEnd,
    /// The command is longer than any may be.
    Command,
    /// An inline command is longer than any may be.
    Inline,
    /// An inline command has too many words.
    Words,
    /// The quotes of an inline command do not match.
    Quotes,
    /// Another protocol is spoken: HTTP, or TLS. It would not understand an answer, and whoever made a browser send it
    /// should not have one.
    Foreign,
}

/// Reads commands, one after the other.
#[derive(Debug, Default)]
pub struct Frames {
    /// Where the arguments are: in the command, or in `line`.
    places: SmallVec<[Place; 8]>,
    /// An inline command's words, one after the other.
    line: Vec<u8>,
    stage: Stage,
    /// Bytes of the command that were looked at.
    at: usize,
}

/// Where an argument begins and ends.
pub(super) type Place = (u32, u32);

/// How far into a command the reader is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// At its beginning.
    #[default]
    Start,
    /// At the length of an element; so many are left.
    Length(usize),
    /// In an element of so many bytes, whose end is not there yet; so many are left, this one included.
    Element(usize, usize),
    /// In an inline command.
    Inline,
    /// All of it was read, as an array or inline.
    Done { inline: bool },
}

/// The arguments of one command, its name first.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    bytes: &'a [u8],
    places: &'a [Place],
}

impl<'a> Arguments<'a> {
    /// How many there are.
    pub fn len(self) -> usize {
        self.places.len()
    }

    /// True for what asks nothing: an empty line, an array of none.
    pub fn is_empty(self) -> bool {
        self.places.is_empty()
    }

    /// One of them.
    pub fn get(self, number: usize) -> Option<&'a [u8]> {
        let (from, to) = *self.places.get(number)?;
        self.bytes.get(from as usize..to as usize)
    }

    /// All of them from that one on.
    pub fn from(self, number: usize) -> impl Iterator<Item = &'a [u8]> {
        (number..self.len()).map_while(move |number| self.get(number))
    }
}

impl Frames {
    /// Reads on. `input` begins where the command does, and holds at least what it held before. Answers how many bytes
    /// the command has once it is all there; the next call is then about the next one.
    pub fn next(&mut self, input: &[u8], limits: &FrameLimits) -> Result<Option<usize>, Fault> {
        if let Stage::Done { .. } = self.stage {
            self.forget();
        }
        loop {
            let done = match self.stage {
                Stage::Start => match input.first() {
                    None => return Ok(None),
                    Some(b'*') => match self.count(input, limits)? {
                        None => return Ok(None),
                        Some(done) => done,
                    },
                    Some(first) if is_foreign(*first) => return Err(Fault::Foreign),
                    Some(first) if is_type(*first) => return Err(Fault::NoCommand(*first)),
                    Some(_) => {
                        self.stage = Stage::Inline;
                        false
                    }
                },
                Stage::Length(left) => match self.length(input, left, limits)? {
                    None => return Ok(None),
                    Some(()) => false,
                },
                Stage::Element(length, left) => match self.element(input, length, left)? {
                    None => return Ok(None),
                    Some(done) => done,
                },
                Stage::Inline => match self.line(input, limits)? {
                    None => return Ok(None),
                    Some(()) => true,
                },
                Stage::Done { .. } => true,
            };
            if done {
                return Ok(Some(self.at));
            }
        }
    }

    /// The arguments of the command that was read last, from the same input.
    pub fn arguments<'a>(&'a self, input: &'a [u8]) -> Arguments<'a> {
        let bytes = if self.stage == (Stage::Done { inline: true }) { &self.line } else { input };
        Arguments { bytes, places: &self.places }
    }

    /// Whether a command has begun and is not all there.
    pub fn is_within(&self) -> bool {
        !matches!(self.stage, Stage::Start | Stage::Done { .. })
    }

    fn forget(&mut self) {
        self.places.clear();
        (self.stage, self.at) = (Stage::Start, 0);
    }

    /// `*N`: true for an array of none.
    fn count(&mut self, input: &[u8], limits: &FrameLimits) -> Result<Option<bool>, Fault> {
        let Some((count, after)) = number(input, 1).map_err(|()| Fault::Multibulk)? else { return Ok(None) };
        self.at = after;
        if matches!(count, 0 | -1) {
            self.stage = Stage::Done { inline: false };
            return Ok(Some(true));
        }
        let count = usize::try_from(count).ok().filter(|count| *count <= limits.elements).ok_or(Fault::Multibulk)?;
        self.stage = Stage::Length(count);
        Ok(Some(false))
    }

    /// `$N`.
    fn length(&mut self, input: &[u8], left: usize, limits: &FrameLimits) -> Result<Option<()>, Fault> {
        let Some(mark) = input.get(self.at) else { return Ok(None) };
        if *mark != b'$' {
            return Err(Fault::NoBulk(*mark));
        }
        let Some((length, after)) = number(input, self.at + 1).map_err(|()| Fault::Bulk)? else { return Ok(None) };
        let length = usize::try_from(length).ok().filter(|length| *length <= limits.bulk).ok_or(Fault::Bulk)?;
        if after + length + 2 > limits.command {
            return Err(Fault::Command);
        }
        (self.at, self.stage) = (after, Stage::Element(length, left));
        Ok(Some(()))
    }

    /// The bytes of an element and its end: true after the last one.
    fn element(&mut self, input: &[u8], length: usize, left: usize) -> Result<Option<bool>, Fault> {
        let end = self.at + length;
        match (input.get(end), input.get(end + 1)) {
            (Some(b'\r'), Some(b'\n')) => {}
            (None, _) | (Some(b'\r'), None) => return Ok(None),
            _ => return Err(Fault::NoEnd),
        }
        self.places.push((self.at as u32, end as u32)); // a command is far below 4 GiB
        self.at = end + 2;
        self.stage = if left > 1 { Stage::Length(left - 1) } else { Stage::Done { inline: false } };
        Ok(Some(left == 1))
    }

    /// A line of words.
    fn line(&mut self, input: &[u8], limits: &FrameLimits) -> Result<Option<()>, Fault> {
        let fresh = input.get(self.at..).unwrap_or_default();
        let Some(end) = fresh.iter().position(|byte| *byte == b'\n').map(|end| self.at + end) else {
            self.at = input.len();
            return if input.len() > limits.inline { Err(Fault::Inline) } else { Ok(None) };
        };
        if end > limits.inline {
            return Err(Fault::Inline);
        }
        let line = input.get(..end).unwrap_or_default();
        self.line.clear();
        inline::split(line, &mut self.line, &mut self.places).map_err(|inline::Unbalanced| Fault::Quotes)?;
        if self.places.len() > limits.elements {
            return Err(Fault::Words);
        }
        (self.at, self.stage) = (end + 1, Stage::Done { inline: true });
        let words = self.arguments(input);
        if words.get(0).is_some_and(is_http) || (words.len() == 3 && words.get(2).is_some_and(is_version)) {
            return Err(Fault::Foreign);
        }
        Ok(Some(()))
    }
}

/// How a browser that was lured here begins, or goes on.
fn is_http(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"POST") || word.eq_ignore_ascii_case(b"Host:")
}

/// How a request line of HTTP ends, whatever its method.
fn is_version(word: &[u8]) -> bool {
    matches!(word, b"HTTP/1.0" | b"HTTP/1.1" | b"HTTP/2.0")
}

/// A byte that begins no word: a handshake of TLS begins with one.
fn is_foreign(byte: u8) -> bool {
    byte >= 0x7f || (byte < b' ' && !byte.is_ascii_whitespace())
}

/// The mark of a type other than the array, in either version of the protocol: none of these begins a word either.
fn is_type(byte: u8) -> bool {
    b"+-:$_#,(!=%~>|.;".contains(&byte)
}

/// Digits of a number and its end of line; more of them are no length of anything.
const DIGITS_MAX: usize = 20;

/// The number at a place and where its line ends. `None`: it is not all there.
#[inline]
fn number(input: &[u8], from: usize) -> Result<Option<(i64, usize)>, ()> {
    let line = input.get(from..).unwrap_or_default();
    let is_negative = line.first() == Some(&b'-');
    let mut value: i64 = 0;
    for (place, byte) in line.iter().enumerate().skip(usize::from(is_negative)) {
        match byte {
            b'0'..=b'9' if place < DIGITS_MAX => {
                value = value.checked_mul(10).and_then(|value| value.checked_add(i64::from(byte - b'0'))).ok_or(())?;
            }
            b'\r' if place > usize::from(is_negative) => {
                return match line.get(place + 1) {
                    None => Ok(None),
                    Some(b'\n') => Ok(Some((if is_negative { -value } else { value }, from + place + 2))),
                    Some(_) => Err(()),
                };
            }
            _ => return Err(()),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
