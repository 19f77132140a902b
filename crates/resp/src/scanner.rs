//! Replies token by token, without building values.
//!
//! A reply often arrives in pieces: scanning finds its end before anything is allocated for it. The nesting is kept in
//! an array of fixed size, so hostile input can neither overflow the stack nor allocate.

use std::fmt;

use crate::length;
use crate::reply_writer::ProtocolVersion;

/// Longest simple string or error.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Most aggregates inside each other.
const DEPTH_MAX: usize = 8;

/// What a reply may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Most bytes of a whole reply.
    pub bytes: usize,
    /// RESP2 refuses the types that only RESP3 has: on such a connection they prove that the peer is no Redis server.
    pub version: ProtocolVersion,
}

impl Default for ReplyLimits {
    /// 16 MiB of either version.
    fn default() -> ReplyLimits {
        ReplyLimits { bytes: 16 << 20, version: ProtocolVersion::Resp3 }
    }
}

/// Bytes that are not a reply. Bytes that follow them cannot be trusted either: the connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyError(pub(crate) &'static str);

impl ReplyError {
    pub(crate) const TOO_LONG: ReplyError = ReplyError("reply exceeds its size limit");

    /// What is wrong, in a few words.
    pub const fn reason(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed Redis reply: {}", self.0)
    }
}

impl std::error::Error for ReplyError {}

/// A scalar, or the header of an aggregate whose elements follow as tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyToken<'a> {
    /// A null of either version.
    Null,
    /// A whole number.
    Integer(i64),
    /// A boolean (RESP3).
    Boolean(bool),
    /// A simple, bulk or verbatim string; a double or a big number, spelled out.
    Text(&'a [u8]),
    /// An error, simple or bulk.
    Error(&'a [u8]),
    /// An array or a set of so many elements.
    Array(usize),
    /// A map of so many pairs (RESP3).
    Map(usize),
    /// A push message of so many elements (RESP3).
    Push(usize),
}

impl ReplyToken<'_> {
    /// How many values follow that belong to this token.
    #[inline]
    fn elements(self) -> usize {
        match self {
            ReplyToken::Array(count) | ReplyToken::Push(count) => count,
            ReplyToken::Map(pairs) => pairs.saturating_mul(2),
            _ => 0,
        }
    }
}

/// Scans one reply at the front of `bytes`.
#[derive(Clone, Debug)]
pub struct ReplyScanner<'a> {
    bytes: &'a [u8],
    at: usize,
    limits: ReplyLimits,
    /// Elements still missing of each open aggregate, outermost first; the first entry counts the reply itself.
    missing: [usize; DEPTH_MAX + 1],
    depth: usize,
}

impl<'a> ReplyScanner<'a> {
    /// A scanner for the reply that begins at the front of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8], limits: ReplyLimits) -> ReplyScanner<'a> {
        let mut missing = [0; DEPTH_MAX + 1];
        missing[0] = 1;
        ReplyScanner { bytes, at: 0, limits, missing, depth: 0 }
    }

    /// Bytes scanned so far; once [`is_complete`](Self::is_complete), the length of the reply.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Whether the last token of the reply has been returned.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.depth == 0 && self.missing.first() == Some(&0)
    }

    /// The next token. `None`: it has not arrived completely.
    #[inline]
    pub fn next_token(&mut self) -> Result<Option<ReplyToken<'a>>, ReplyError> {
        let Some((token, after)) = self.token()? else { return Ok(None) };
        self.at = after;
        if let Some(missing) = self.missing.get_mut(self.depth) {
            *missing = missing.saturating_sub(1);
        }
        if let elements @ 1.. = token.elements() {
            self.depth += 1;
            *self.missing.get_mut(self.depth).ok_or(ReplyError("nested too deeply"))? = elements;
        } else {
            while self.depth > 0 && self.missing.get(self.depth) == Some(&0) {
                self.depth -= 1;
            }
        }
        Ok(Some(token))
    }

    /// Scans to the end of the reply and returns its length. `None`: it has not arrived completely.
    pub fn reply_length(mut self) -> Result<Option<usize>, ReplyError> {
        while !self.is_complete() {
            if self.next_token()?.is_none() {
                return if self.bytes.len() > self.limits.bytes { Err(ReplyError::TOO_LONG) } else { Ok(None) };
            }
        }
        if self.at > self.limits.bytes { Err(ReplyError::TOO_LONG) } else { Ok(Some(self.at)) }
    }

    /// The token at the current position, and the position after it.
    #[inline]
    fn token(&self) -> Result<Option<(ReplyToken<'a>, usize)>, ReplyError> {
        let Some(mark) = self.bytes.get(self.at) else { return Ok(None) };
        match mark {
            b':' => Ok(self.number()?.map(|(number, after)| (ReplyToken::Integer(number), after))),
            b'$' => self.bulk(ReplyToken::Text),
            b'*' => self.aggregate(ReplyToken::Array),
            b'+' => self.line(ReplyToken::Text),
            b'-' => self.line(ReplyToken::Error),
            _ if self.limits.version == ProtocolVersion::Resp2 => Err(UNKNOWN_TYPE),
            b'_' => self.line(|_| ReplyToken::Null),
            b'#' => self.line(|line| ReplyToken::Boolean(line == b"t")),
            b',' | b'(' => self.line(ReplyToken::Text),
            b'=' => self.bulk(|text| ReplyToken::Text(text.get(4..).unwrap_or_default())), // without "txt:"
            b'!' => self.bulk(ReplyToken::Error),
            b'~' => self.aggregate(ReplyToken::Array),
            b'%' => self.aggregate(ReplyToken::Map),
            b'>' => self.aggregate(ReplyToken::Push),
            _ => Err(UNKNOWN_TYPE),
        }
    }

    #[inline]
    fn number(&self) -> Result<Option<(i64, usize)>, ReplyError> {
        length::read(self.bytes, self.at + 1).map_err(|length::NotANumber| ReplyError("expected a number"))
    }

    /// A length or count; the inner `None` is a null.
    #[inline]
    fn length(&self) -> Result<Option<(Option<usize>, usize)>, ReplyError> {
        match self.number()? {
            None => Ok(None),
            Some((-1, after)) => Ok(Some((None, after))),
            Some((length, after)) => match usize::try_from(length) {
                Ok(length) => Ok(Some((Some(length), after))),
                Err(_) => Err(ReplyError("negative length")),
            },
        }
    }

    fn line(&self, token: impl Fn(&'a [u8]) -> ReplyToken<'a>) -> Result<Option<(ReplyToken<'a>, usize)>, ReplyError> {
        let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
        match rest.windows(2).take(LINE_BYTES_MAX).position(|pair| pair == b"\r\n") {
            Some(end) => Ok(rest.get(..end).map(|line| (token(line), self.at + end + 3))),
            None if rest.len() >= LINE_BYTES_MAX => Err(ReplyError("line without an end")),
            None => Ok(None),
        }
    }

    #[inline]
    fn bulk(&self, token: impl Fn(&'a [u8]) -> ReplyToken<'a>) -> Result<Option<(ReplyToken<'a>, usize)>, ReplyError> {
        let Some((length, head)) = self.length()? else { return Ok(None) };
        let Some(length) = length else { return Ok(Some((ReplyToken::Null, head))) };
        if length > self.limits.bytes {
            return Err(ReplyError::TOO_LONG);
        }
        let end = head + length;
        match (self.bytes.get(head..end), self.bytes.get(end..end + 2)) {
            (Some(text), Some(b"\r\n")) => Ok(Some((token(text), end + 2))),
            (Some(_), Some(_)) => Err(ReplyError("string does not end at its length")),
            _ => Ok(None),
        }
    }

    #[inline]
    fn aggregate(
        &self,
        token: impl Fn(usize) -> ReplyToken<'a>,
    ) -> Result<Option<(ReplyToken<'a>, usize)>, ReplyError> {
        let Some((count, head)) = self.length()? else { return Ok(None) };
        let Some(count) = count else { return Ok(Some((ReplyToken::Null, head))) };
        let smallest = match self.limits.version {
            ProtocolVersion::Resp2 => 4, // ":0\r\n"
            ProtocolVersion::Resp3 => 3, // "_\r\n"
        };
        match count > self.limits.bytes / smallest {
            true => Err(ReplyError::TOO_LONG),
            false => Ok(Some((token(count), head))),
        }
    }
}

const UNKNOWN_TYPE: ReplyError = ReplyError("unknown reply type");

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Vec<ReplyToken<'_>>, ReplyError> {
        let mut scanner = ReplyScanner::new(text.as_bytes(), ReplyLimits::default());
        let mut tokens = Vec::new();
        while !scanner.is_complete() {
            tokens.push(scanner.next_token()?.expect("a whole reply"));
        }
        assert_eq!(scanner.position(), text.len(), "{text:?}");
        Ok(tokens)
    }

    #[test]
    fn every_type_of_resp3_is_a_token() {
        use ReplyToken::*;
        let reply = "*11\r\n+OK\r\n-ERR\r\n:-7\r\n$-1\r\n_\r\n#t\r\n,1.5\r\n(99\r\n=7\r\ntxt:abc\r\n!2\r\nno\r\n%1\r\n#f\r\n~0\r\n";
        let expected = [
            Array(11),
            Text(b"OK"),
            Error(b"ERR"),
            Integer(-7),
            Null,
            Null,
            Boolean(true),
            Text(b"1.5"),
            Text(b"99"),
            Text(b"abc"),
            Error(b"no"),
            Map(1),
            Boolean(false),
            Array(0),
        ];
        assert_eq!(tokens(reply), Ok(expected.to_vec()));
        assert_eq!(tokens(">1\r\n*-1\r\n"), Ok(vec![Push(1), Null]));
    }

    #[test]
    fn nested_aggregates_end_together() {
        assert_eq!(tokens("*2\r\n*1\r\n*0\r\n*2\r\n*1\r\n:1\r\n:2\r\n").map(|tokens| tokens.len()), Ok(7));
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |levels: usize| format!("{}:1\r\n", "*1\r\n".repeat(levels));
        assert!(tokens(&nested(DEPTH_MAX)).is_ok());
        assert_eq!(tokens(&nested(DEPTH_MAX + 1)), Err(ReplyError("nested too deeply")));
    }
}
