//! The wire protocol of Redis, as much of it as a client needs: commands out, replies in (RESP2).

mod decode;
mod encode;

pub use decode::{Malformed, decode, decode_at_most};
pub use encode::{command, header, part};

use bytes::Bytes;

/// One reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing: an absent key.
    Nil,
    /// A number.
    Integer(i64),
    /// A string of any bytes.
    Text(Bytes),
    /// The server refused. Only the first word means something; the rest differs from server to server.
    Error(Bytes),
    /// Several replies.
    Array(Vec<Value>),
}

impl Value {
    /// The bytes of a string.
    pub fn text(&self) -> Option<&[u8]> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// The number, whether sent as one or spelled out.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Value::Integer(number) => Some(*number),
            Value::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// The elements of an array.
    pub fn array(&self) -> Option<&[Value]> {
        if let Value::Array(values) = self { Some(values) } else { None }
    }

    /// The first word of an error, which says what it is.
    pub fn error_word(&self) -> Option<&[u8]> {
        let Value::Error(text) = self else { return None };
        text.split(|byte| *byte == b' ').next()
    }
}
