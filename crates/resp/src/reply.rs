//! Replies as values.

use bytes::{Bytes, BytesMut};

use crate::scanner::{ReplyError, ReplyLimits, ReplyScanner, ReplyToken};

/// One reply. Strings are slices of the buffer they arrived in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RespValue {
    /// Null: an absent key.
    Nil,
    /// A whole number.
    Integer(i64),
    /// A boolean (RESP3).
    Boolean(bool),
    /// A string of any bytes.
    Text(Bytes),
    /// The server refused the request. Only the first word has a fixed meaning; the rest differs between servers.
    Error(Bytes),
    /// An array or a set.
    Array(Vec<RespValue>),
    /// Pairs of keys and values (RESP3).
    Map(Vec<(RespValue, RespValue)>),
    /// A message that answers no request (RESP3).
    Push(Vec<RespValue>),
}

impl RespValue {
    /// The bytes of a string.
    pub fn text(&self) -> Option<&[u8]> {
        if let RespValue::Text(text) = self { Some(text) } else { None }
    }

    /// The number, sent as an integer or as a string.
    pub fn integer(&self) -> Option<i64> {
        match self {
            RespValue::Integer(number) => Some(*number),
            RespValue::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// The elements of an array.
    pub fn array(&self) -> Option<&[RespValue]> {
        if let RespValue::Array(values) = self { Some(values) } else { None }
    }

    /// The first word of an error: its code.
    pub fn error_word(&self) -> Option<&[u8]> {
        let RespValue::Error(text) = self else { return None };
        text.split(|byte| *byte == b' ').next()
    }
}

/// Takes one whole reply off the front of `buffer`. `None`: it has not arrived completely. A reply that exceeds its
/// limits, or announces that it will, is refused without reading further.
pub fn decode(buffer: &mut BytesMut, limits: ReplyLimits) -> Result<Option<RespValue>, ReplyError> {
    let Some(length) = ReplyScanner::new(buffer, limits).reply_length()? else { return Ok(None) };
    let whole = buffer.split_to(length).freeze();
    Ok(Some(value(&mut ReplyScanner::new(&whole, limits), &whole)))
}

/// Builds the next value of a reply that was scanned to its end before.
fn value(scanner: &mut ReplyScanner<'_>, whole: &Bytes) -> RespValue {
    let Ok(Some(token)) = scanner.next_token() else { return RespValue::Nil }; // not reached: the reply is whole
    match token {
        ReplyToken::Null => RespValue::Nil,
        ReplyToken::Integer(number) => RespValue::Integer(number),
        ReplyToken::Boolean(boolean) => RespValue::Boolean(boolean),
        ReplyToken::Text(text) => RespValue::Text(whole.slice_ref(text)),
        ReplyToken::Error(text) => RespValue::Error(whole.slice_ref(text)),
        ReplyToken::Array(count) => RespValue::Array((0..count).map(|_| value(scanner, whole)).collect()),
        ReplyToken::Push(count) => RespValue::Push((0..count).map(|_| value(scanner, whole)).collect()),
        ReplyToken::Map(pairs) => {
            RespValue::Map((0..pairs).map(|_| (value(scanner, whole), value(scanner, whole))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProtocolVersion;

    fn text(text: &'static str) -> RespValue {
        RespValue::Text(Bytes::from_static(text.as_bytes()))
    }

    fn decode(buffer: &mut BytesMut) -> Result<Option<RespValue>, ReplyError> {
        decode_at_most(buffer, 16 << 20)
    }

    fn decode_at_most(buffer: &mut BytesMut, bytes: usize) -> Result<Option<RespValue>, ReplyError> {
        super::decode(buffer, ReplyLimits { bytes, version: ProtocolVersion::Resp2 })
    }

    #[test]
    fn replies_are_read_whole_wherever_they_are_cut() {
        let bytes = b"*4\r\n$3\r\na\r\n\r\n:-7\r\n$-1\r\n*2\r\n+OK\r\n-ERR no\r\n";
        let inner = RespValue::Array(vec![text("OK"), RespValue::Error(Bytes::from_static(b"ERR no"))]);
        let whole = RespValue::Array(vec![text("a\r\n"), RespValue::Integer(-7), RespValue::Nil, inner]);
        for cut in 0..bytes.len() {
            let mut buffer = BytesMut::from(&bytes[..cut]);
            assert_eq!(decode(&mut buffer), Ok(None), "cut at {cut}");
            buffer.extend_from_slice(&bytes[cut..]);
            buffer.extend_from_slice(b":1\r\n");
            assert_eq!(decode(&mut buffer), Ok(Some(whole.clone())), "cut at {cut}");
            assert_eq!(decode(&mut buffer), Ok(Some(RespValue::Integer(1))));
        }
    }

    #[test]
    fn replies_of_resp3_are_values_where_it_is_spoken() {
        let bytes = "%2\r\n+a\r\n#t\r\n$1\r\nb\r\n>2\r\n_\r\n,0.5\r\n";
        let push = RespValue::Push(vec![RespValue::Nil, text("0.5")]);
        let map = RespValue::Map(vec![(text("a"), RespValue::Boolean(true)), (text("b"), push)]);
        assert_eq!(super::decode(&mut BytesMut::from(bytes), ReplyLimits::default()), Ok(Some(map)));
        for mark in "_#,(=!~%>".chars() {
            assert!(decode(&mut BytesMut::from(format!("{mark}0\r\n").as_str())).is_err(), "{mark} is not RESP2");
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
    fn malformed_replies_are_refused() {
        for bad in ["?\r\n", "\r\n", ":1x\r\n", "$2\r\nabc\r\n", "$-2\r\n", "$99999999999\r\n", "*1\r\n?\r\n"] {
            assert!(decode(&mut BytesMut::from(bad)).is_err(), "{bad:?}");
        }
        let deep = "*1\r\n".repeat(50);
        assert!(decode(&mut BytesMut::from(deep.as_str())).is_err());
    }
}
