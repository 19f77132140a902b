//! Replies as a server writes them, in either version of the protocol.

use crate::length;

/// Most bytes of a request that an error reply quotes.
const EXCERPT_MAX: usize = 128;

/// The part of a request that an error reply quotes.
pub fn excerpt(sent: &[u8]) -> &[u8] {
    sent.get(..EXCERPT_MAX).unwrap_or(sent)
}

/// The version of the protocol that a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProtocolVersion {
    /// The default of every connection.
    #[default]
    Resp2,
    /// With maps, sets, booleans and one null; negotiated with `HELLO 3`.
    Resp3,
}

impl ProtocolVersion {
    /// Its number.
    pub const fn number(self) -> u64 {
        match self {
            ProtocolVersion::Resp2 => 2,
            ProtocolVersion::Resp3 => 3,
        }
    }
}

/// Appends replies to an output buffer.
#[derive(Debug)]
pub struct ReplyWriter<'a> {
    out: &'a mut Vec<u8>,
    version: ProtocolVersion,
}

impl<'a> ReplyWriter<'a> {
    /// A writer for a connection of that version.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, version: ProtocolVersion) -> ReplyWriter<'a> {
        ReplyWriter { out, version }
    }

    /// The version of the replies.
    #[inline]
    pub fn version(&self) -> ProtocolVersion {
        self.version
    }

    /// Changes the version of the replies that follow.
    #[inline]
    pub fn set_version(&mut self, version: ProtocolVersion) {
        self.version = version;
    }

    /// `+OK` and the like.
    #[inline]
    pub fn simple(&mut self, text: &'static str) {
        self.out.push(b'+');
        self.out.extend_from_slice(text.as_bytes());
        self.end();
    }

    /// An error, concatenated from parts. Line ends and NUL become spaces: parts may quote the request.
    pub fn error(&mut self, parts: &[&[u8]]) {
        self.out.push(b'-');
        let bytes = parts.iter().flat_map(|part| part.iter());
        self.out.extend(bytes.map(|byte| if matches!(byte, b'\r' | b'\n' | 0) { b' ' } else { *byte }));
        self.end();
    }

    /// A whole number.
    #[inline]
    pub fn integer(&mut self, number: i64) {
        if let digit @ 0..=9 = number {
            return self.out.extend_from_slice(&[b':', b'0' + digit as u8, b'\r', b'\n']);
        }
        self.out.push(b':');
        self.out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.end();
    }

    /// A whole number; `i64::MAX` if it is larger.
    #[inline]
    pub fn unsigned(&mut self, number: u64) {
        self.integer(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// Reserves so many bytes at once.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) {
        self.out.reserve(bytes);
    }

    /// A complete reply that was encoded at compile time.
    #[inline]
    pub fn encoded(&mut self, reply: &'static [u8]) {
        self.out.extend_from_slice(reply);
    }

    /// A string of any bytes.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        length::write(self.out, b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.end();
    }

    /// Null.
    #[inline]
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.version {
            ProtocolVersion::Resp2 => b"$-1\r\n",
            ProtocolVersion::Resp3 => b"_\r\n",
        });
    }

    /// Null in place of an array.
    pub fn null_array(&mut self) {
        match self.version {
            ProtocolVersion::Resp2 => self.out.extend_from_slice(b"*-1\r\n"),
            ProtocolVersion::Resp3 => self.null(),
        }
    }

    /// A boolean; 1 or 0 in RESP2.
    #[inline]
    pub fn boolean(&mut self, yes: bool) {
        self.out.extend_from_slice(match (self.version, yes) {
            (ProtocolVersion::Resp2, true) => b":1\r\n",
            (ProtocolVersion::Resp2, false) => b":0\r\n",
            (ProtocolVersion::Resp3, true) => b"#t\r\n",
            (ProtocolVersion::Resp3, false) => b"#f\r\n",
        });
    }

    /// The header of an array; `count` replies must follow.
    #[inline]
    pub fn array(&mut self, count: usize) {
        length::write(self.out, b'*', count);
    }

    /// The header of a set; of an array in RESP2.
    #[inline]
    pub fn set(&mut self, count: usize) {
        let mark = if self.version == ProtocolVersion::Resp3 { b'~' } else { b'*' };
        length::write(self.out, mark, count);
    }

    /// The header of a map; of an array of twice as many elements in RESP2.
    #[inline]
    pub fn map(&mut self, pairs: usize) {
        match self.version {
            ProtocolVersion::Resp2 => length::write(self.out, b'*', 2 * pairs),
            ProtocolVersion::Resp3 => length::write(self.out, b'%', pairs),
        }
    }

    #[inline]
    fn end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }
}
