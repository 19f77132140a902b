//! Requests as a server reads them: arrays of bulk strings, or inline commands, cut anywhere.
//!
//! Nothing is copied: an argument is a span of the read buffer (of an inline command, which may hold escapes, a span of
//! a line assembled here). Nothing is parsed twice: the parser remembers its progress, so a large request that arrives
//! byte by byte costs as much as one that arrives whole. No announced length is trusted: memory grows with bytes that
//! have arrived.

use std::fmt;

use smallvec::SmallVec;

use crate::inline::{self, ArgumentSpan};
use crate::length;
use crate::reply_writer::ReplyWriter;

/// What a request may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Most elements, the command's name included.
    pub elements: usize,
    /// Most bytes of an element.
    pub bulk: usize,
    /// Most bytes of an inline command.
    pub inline: usize,
    /// Most bytes of a whole request.
    pub command: usize,
}

impl RequestLimits {
    /// For connections that have authenticated, or need not.
    pub const AUTHENTICATED: RequestLimits =
        RequestLimits { elements: 64, bulk: 64 << 10, inline: 4 << 10, command: 1 << 20 };
    /// For connections that have yet to authenticate: enough for `AUTH` and `HELLO`.
    pub const UNAUTHENTICATED: RequestLimits =
        RequestLimits { elements: 10, bulk: 16 << 10, command: 20 << 10, ..RequestLimits::AUTHENTICATED };
}

/// Why bytes are not a request. The connection must end: the start of the next request is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The number of elements is missing, malformed or too large.
    MultibulkLength,
    /// The length of an element is missing, malformed or too large.
    BulkLength,
    /// An element begins with this byte instead of `$`.
    ExpectedBulk(u8),
    /// The request begins with this mark of another type than the array.
    ExpectedArray(u8),
    /// An element does not end at its length.
    MissingCrlf,
    /// The request exceeds its limit.
    RequestTooLong,
    /// The inline command exceeds its limit.
    InlineTooLong,
    /// The inline command has too many words.
    TooManyWords,
    /// The quotes of an inline command do not match.
    UnbalancedQuotes,
    /// HTTP or TLS. There is no reply: the peer would not understand it, and a web page that made a browser connect must
    /// not receive one.
    OtherProtocol,
}

impl ProtocolError {
    /// Whether the request is too large rather than malformed.
    pub const fn is_oversized(self) -> bool {
        matches!(self, ProtocolError::RequestTooLong | ProtocolError::InlineTooLong | ProtocolError::TooManyWords)
    }

    /// Writes the error reply; nothing for [`OtherProtocol`](ProtocolError::OtherProtocol).
    pub fn write(self, out: &mut ReplyWriter<'_>) {
        const PREFIX: &[u8] = b"ERR Protocol error: ";
        match (self, self.text()) {
            (ProtocolError::OtherProtocol, _) => {}
            (ProtocolError::ExpectedBulk(got) | ProtocolError::ExpectedArray(got), text) => {
                out.error(&[PREFIX, text.as_bytes(), b", got '", &[got], b"'"]);
            }
            (_, text) => out.error(&[PREFIX, text.as_bytes()]),
        }
    }

    const fn text(self) -> &'static str {
        match self {
            ProtocolError::MultibulkLength => "invalid multibulk length",
            ProtocolError::BulkLength => "invalid bulk length",
            ProtocolError::ExpectedBulk(_) => "expected '$'",
            ProtocolError::ExpectedArray(_) => "expected '*'",
            ProtocolError::MissingCrlf => "expected CRLF after bulk",
            ProtocolError::RequestTooLong => "too big request",
            ProtocolError::InlineTooLong => "too big inline request",
            ProtocolError::TooManyWords => "too many arguments",
            ProtocolError::UnbalancedQuotes => "unbalanced quotes in request",
            ProtocolError::OtherProtocol => "not RESP",
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())?;
        match self {
            ProtocolError::ExpectedBulk(got) | ProtocolError::ExpectedArray(got) => {
                write!(f, ", got '{}'", got.escape_ascii())
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// Parses requests, one after the other.
#[derive(Debug, Default)]
pub struct RequestParser {
    /// The arguments: spans of the request, or of `line`.
    spans: SmallVec<[ArgumentSpan; 8]>,
    /// The words of an inline command, concatenated.
    line: Vec<u8>,
    stage: Stage,
    /// Bytes of the request parsed so far.
    at: usize,
}

/// How much of a request has been parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Nothing.
    #[default]
    Start,
    /// Up to the length of an element; so many elements are left.
    Length(usize),
    /// Up to an element of so many bytes that has not arrived completely; so many elements are left with it.
    Element(usize, usize),
    /// A part of an inline command.
    Inline,
    /// All of it.
    Done { inline: bool },
}

/// The arguments of one request, the command's name first.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    bytes: &'a [u8],
    spans: &'a [ArgumentSpan],
}

impl<'a> Arguments<'a> {
    /// How many there are.
    #[inline]
    pub fn len(self) -> usize {
        self.spans.len()
    }

    /// True for an empty line and an empty array, which need no reply.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    /// The argument at an index; 0 is the command's name.
    #[inline]
    pub fn get(self, number: usize) -> Option<&'a [u8]> {
        let (from, to) = *self.spans.get(number)?;
        self.bytes.get(from as usize..to as usize)
    }

    /// The arguments from an index on.
    #[inline]
    pub fn from(self, number: usize) -> impl Iterator<Item = &'a [u8]> {
        (number..self.len()).map_while(move |number| self.get(number))
    }
}

impl RequestParser {
    /// Parses on. `input` begins where the request does, and holds at least the bytes of the previous call. Returns the
    /// length of the request once it has arrived completely; the next call then begins the next request.
    pub fn next(&mut self, input: &[u8], limits: &RequestLimits) -> Result<Option<usize>, ProtocolError> {
        if let Stage::Done { .. } = self.stage {
            self.reset();
        }
        loop {
            let done = match self.stage {
                Stage::Start => match input.first() {
                    None => return Ok(None),
                    Some(b'*') => match self.count(input, limits)? {
                        None => return Ok(None),
                        Some(done) => done,
                    },
                    Some(first) if is_foreign(*first) => return Err(ProtocolError::OtherProtocol),
                    Some(first) if is_type(*first) => return Err(ProtocolError::ExpectedArray(*first)),
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

    /// The arguments of the request that [`next`](Self::next) completed last, from the same input.
    #[inline]
    pub fn arguments<'a>(&'a self, input: &'a [u8]) -> Arguments<'a> {
        let bytes = if self.stage == (Stage::Done { inline: true }) { &self.line } else { input };
        Arguments { bytes, spans: &self.spans }
    }

    /// Whether a request has begun and has not arrived completely.
    #[inline]
    pub fn is_partial(&self) -> bool {
        !matches!(self.stage, Stage::Start | Stage::Done { .. })
    }

    fn reset(&mut self) {
        self.spans.clear();
        (self.stage, self.at) = (Stage::Start, 0);
    }

    /// `*N`: true for an empty or null array, which completes the request.
    fn count(&mut self, input: &[u8], limits: &RequestLimits) -> Result<Option<bool>, ProtocolError> {
        let Some((count, after)) =
            length::read(input, 1).map_err(|length::NotANumber| ProtocolError::MultibulkLength)?
        else {
            return Ok(None);
        };
        self.at = after;
        if matches!(count, 0 | -1) {
            self.stage = Stage::Done { inline: false };
            return Ok(Some(true));
        }
        let count = usize::try_from(count)
            .ok()
            .filter(|count| *count <= limits.elements)
            .ok_or(ProtocolError::MultibulkLength)?;
        self.stage = Stage::Length(count);
        Ok(Some(false))
    }

    /// `$N`.
    fn length(&mut self, input: &[u8], left: usize, limits: &RequestLimits) -> Result<Option<()>, ProtocolError> {
        let Some(mark) = input.get(self.at) else { return Ok(None) };
        if *mark != b'$' {
            return Err(ProtocolError::ExpectedBulk(*mark));
        }
        let Some((length, after)) =
            length::read(input, self.at + 1).map_err(|length::NotANumber| ProtocolError::BulkLength)?
        else {
            return Ok(None);
        };
        let length =
            usize::try_from(length).ok().filter(|length| *length <= limits.bulk).ok_or(ProtocolError::BulkLength)?;
        if after + length + 2 > limits.command {
            return Err(ProtocolError::RequestTooLong);
        }
        (self.at, self.stage) = (after, Stage::Element(length, left));
        Ok(Some(()))
    }

    /// The bytes of an element and its CRLF: true after the last one.
    fn element(&mut self, input: &[u8], length: usize, left: usize) -> Result<Option<bool>, ProtocolError> {
        let end = self.at + length;
        match (input.get(end), input.get(end + 1)) {
            (Some(b'\r'), Some(b'\n')) => {}
            (None, _) | (Some(b'\r'), None) => return Ok(None),
            _ => return Err(ProtocolError::MissingCrlf),
        }
        self.spans.push((self.at as u32, end as u32)); // a request is far below 4 GiB
        self.at = end + 2;
        self.stage = if left > 1 { Stage::Length(left - 1) } else { Stage::Done { inline: false } };
        Ok(Some(left == 1))
    }

    /// An inline command.
    fn line(&mut self, input: &[u8], limits: &RequestLimits) -> Result<Option<()>, ProtocolError> {
        let fresh = input.get(self.at..).unwrap_or_default();
        let Some(end) = fresh.iter().position(|byte| *byte == b'\n').map(|end| self.at + end) else {
            self.at = input.len();
            return if input.len() > limits.inline { Err(ProtocolError::InlineTooLong) } else { Ok(None) };
        };
        if end > limits.inline {
            return Err(ProtocolError::InlineTooLong);
        }
        let line = input.get(..end).unwrap_or_default();
        self.line.clear();
        inline::split(line, &mut self.line, &mut self.spans)
            .map_err(|inline::Unbalanced| ProtocolError::UnbalancedQuotes)?;
        if self.spans.len() > limits.elements {
            return Err(ProtocolError::TooManyWords);
        }
        (self.at, self.stage) = (end + 1, Stage::Done { inline: true });
        let words = self.arguments(input);
        if words.get(0).is_some_and(is_http) || (words.len() == 3 && words.get(2).is_some_and(is_version)) {
            return Err(ProtocolError::OtherProtocol);
        }
        Ok(Some(()))
    }
}

/// First words of HTTP requests that a web page can make a browser send.
fn is_http(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"POST") || word.eq_ignore_ascii_case(b"Host:")
}

/// Last word of an HTTP request line of any method.
fn is_version(word: &[u8]) -> bool {
    matches!(word, b"HTTP/1.0" | b"HTTP/1.1" | b"HTTP/2.0")
}

/// A byte that cannot begin a word, such as the first of a TLS handshake.
fn is_foreign(byte: u8) -> bool {
    byte >= 0x7f || (byte < b' ' && !byte.is_ascii_whitespace())
}

/// The mark of a type other than the array, in either version; none of them begins a command's name.
fn is_type(byte: u8) -> bool {
    b"+-:$_#,(!=%~>|.;".contains(&byte)
}

#[cfg(test)]
mod tests;
