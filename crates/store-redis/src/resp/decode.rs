//! Replies, read from whatever has arrived so far.

use std::fmt;

use bytes::{Buf, Bytes, BytesMut};

use super::Value;

/// No reply at all is longer.
const REPLY_BYTES_MAX: usize = 16 << 20;
/// Our scripts nest replies three deep.
const DEPTH_MAX: usize = 8;

/// What arrived is no reply; whatever follows it cannot be trusted either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(&'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a reply of Redis: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// Takes one whole reply off the front of `buffer`; `None` if more must arrive first.
pub fn decode(buffer: &mut BytesMut) -> Result<Option<Value>, Malformed> {
    decode_at_most(buffer, REPLY_BYTES_MAX)
}

/// The same for a reply of at most so many bytes. Whoever sends more, or announces more, is broken or lies, and is not
/// read any further.
pub fn decode_at_most(buffer: &mut BytesMut, most: usize) -> Result<Option<Value>, Malformed> {
    let mut scan = Scan { bytes: buffer, at: 0, most };
    match scan.skip(0) {
        Err(Stop::Malformed(why)) => Err(Malformed(why)),
        Err(Stop::Incomplete) if buffer.len() > most => Err(TOO_LONG),
        Ok(()) if scan.at > most => Err(TOO_LONG),
        Err(Stop::Incomplete) => Ok(None),
        Ok(()) => {
            let length = scan.at;
            Ok(Some(value(&mut buffer.split_to(length).freeze())))
        }
    }
}

const TOO_LONG: Malformed = Malformed("longer than what was asked for");

enum Stop {
    Incomplete,
    Malformed(&'static str),
}

/// Walks over a reply without building it: most of the time it is not all there yet.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    most: usize,
}

impl<'a> Scan<'a> {
    fn skip(&mut self, depth: usize) -> Result<(), Stop> {
        let line = self.line()?;
        let (kind, rest) = line.split_first().ok_or(Stop::Malformed("an empty line"))?;
        match kind {
            b'+' | b'-' => Ok(()),
            b':' => number(rest).map(|_| ()),
            b'$' => match number(rest)? {
                -1 => Ok(()),
                length => self.skip_bytes(length),
            },
            b'*' if depth == DEPTH_MAX => Err(Stop::Malformed("nested too deep")),
            // An element takes four bytes at least.
            b'*' => match number(rest)? {
                many if many.unsigned_abs() > self.most as u64 / 4 => Err(Stop::Malformed(TOO_LONG.0)),
                many => (0..many).try_for_each(|_| self.skip(depth + 1)),
            },
            _ => Err(Stop::Malformed("an unknown kind of reply")),
        }
    }

    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let end = rest.windows(2).position(|pair| pair == b"\r\n").ok_or(Stop::Incomplete)?;
        self.at += end + 2;
        rest.get(..end).ok_or(Stop::Incomplete)
    }

    fn skip_bytes(&mut self, length: i64) -> Result<(), Stop> {
        let length = usize::try_from(length).map_err(|_| Stop::Malformed("a negative length"))?;
        if length > self.most {
            return Err(Stop::Malformed(TOO_LONG.0));
        }
        let end = self.at + length;
        match self.bytes.get(end..end + 2) {
            None => Err(Stop::Incomplete),
            Some(b"\r\n") => {
                self.at = end + 2;
                Ok(())
            }
            Some(_) => Err(Stop::Malformed("a string of another length than it says")),
        }
    }
}

fn number(text: &[u8]) -> Result<i64, Stop> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or(Stop::Malformed("a number that is none"))
}

/// Builds the reply that [`Scan`] found whole.
fn value(bytes: &mut Bytes) -> Value {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n").unwrap_or(bytes.len());
    let mut line = bytes.split_to(end);
    bytes.advance(2.min(bytes.len()));
    let kind = if line.is_empty() { b'+' } else { line.get_u8() };
    let number = || number(&line).unwrap_or(-1);
    match kind {
        b'-' => Value::Error(line),
        b':' => Value::Integer(number()),
        b'$' => match usize::try_from(number()) {
            Err(_) => Value::Nil,
            Ok(length) => {
                let text = bytes.split_to(length.min(bytes.len()));
                bytes.advance(2.min(bytes.len()));
                Value::Text(text)
            }
        },
        b'*' => match usize::try_from(number()) {
            Err(_) => Value::Nil,
            Ok(length) => Value::Array((0..length).map(|_| value(bytes)).collect()),
        },
        _ => Value::Text(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &'static str) -> Value {
        Value::Text(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn replies_are_read_whole_wherever_they_are_cut() {
        let bytes = b"*4\r\n$3\r\na\r\n\r\n:-7\r\n$-1\r\n*2\r\n+OK\r\n-ERR no\r\n";
        let inner = Value::Array(vec![text("OK"), Value::Error(Bytes::from_static(b"ERR no"))]);
        let whole = Value::Array(vec![text("a\r\n"), Value::Integer(-7), Value::Nil, inner]);
        for cut in 0..bytes.len() {
            let mut buffer = BytesMut::from(&bytes[..cut]);
            assert_eq!(decode(&mut buffer), Ok(None), "cut at {cut}");
            buffer.extend_from_slice(&bytes[cut..]);
            buffer.extend_from_slice(b":1\r\n");
            assert_eq!(decode(&mut buffer), Ok(Some(whole.clone())), "cut at {cut}");
            assert_eq!(decode(&mut buffer), Ok(Some(Value::Integer(1))));
        }
    }

    #[test]
    fn a_reply_is_refused_as_soon_as_it_is_longer_than_it_may_be() {
        let refused = |text: &str| decode_at_most(&mut BytesMut::from(text), 20).is_err();
        assert!(refused("$21\r\n") && refused("*6\r\n") && refused(&"+".repeat(21)), "announced, or sent");
        assert!(refused("*2\r\n$8\r\n12345678\r\n$8\r\n12345678\r\n"), "in parts");
        assert!(!refused("$13\r\n1234567890123\r\n") && !refused("$20\r\n"), "whole, and not yet");
        let mut two = BytesMut::from("$8\r\n12345678\r\n$8\r\n12345678\r\n");
        assert!(matches!(decode_at_most(&mut two, 20), Ok(Some(_))), "what follows is another reply");
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for bad in ["?\r\n", "\r\n", ":1x\r\n", "$2\r\nabc\r\n", "$-2\r\n", "$99999999999\r\n", "*1\r\n?\r\n"] {
            assert!(decode(&mut BytesMut::from(bad)).is_err(), "{bad:?}");
        }
        let deep = "*1\r\n".repeat(50);
        assert!(decode(&mut BytesMut::from(deep.as_str())).is_err());
    }
}
