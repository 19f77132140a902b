//! Replies as bytes, in either version of the protocol.

/// Longest part of an error that repeats what was sent.
const SHOWN_MAX: usize = 128;

/// As much of what was sent as an error repeats.
pub fn shown(sent: &[u8]) -> &[u8] {
    sent.get(..SHOWN_MAX).unwrap_or(sent)
}

/// The version of the protocol that a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// What every client speaks.
    #[default]
    Resp2,
    /// With maps, booleans and a null of its own.
    Resp3,
}

impl Version {
    /// Its number.
    pub const fn number(self) -> u64 {
        match self {
            Version::Resp2 => 2,
            Version::Resp3 => 3,
        }
    }
}

/// Appends replies to what leaves next.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    version: Version,
}

impl<'a> Writer<'a> {
    /// A writer for a connection that speaks `version`.
    pub fn new(out: &'a mut Vec<u8>, version: Version) -> Writer<'a> {
        Writer { out, version }
    }

    /// Which version is spoken.
    pub fn version(&self) -> Version {
        self.version
    }

    /// From now on another version is spoken.
    pub fn serve(&mut self, version: Version) {
        self.version = version;
    }

    /// `+OK` and the like.
    pub fn simple(&mut self, text: &'static str) {
        self.out.push(b'+');
        self.out.extend_from_slice(text.as_bytes());
        self.end();
    }

    /// An error, put together from parts: none of them ends the line, whoever sent it.
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

    /// A whole number that may be larger than a signed one holds.
    #[inline]
    pub fn unsigned(&mut self, number: u64) {
        self.integer(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// Makes room for so many bytes at once.
    pub fn reserve(&mut self, bytes: usize) {
        self.out.reserve(bytes);
    }

    /// A reply that was put together when we compiled.
    #[inline]
    pub fn framed(&mut self, reply: &'static [u8]) {
        self.out.extend_from_slice(reply);
    }

    /// Any bytes.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.count(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.end();
    }

    /// Nothing.
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.version {
            Version::Resp2 => b"$-1\r\n",
            Version::Resp3 => b"_\r\n",
        });
    }

    /// No array, where one was asked for.
    pub fn no_array(&mut self) {
        match self.version {
            Version::Resp2 => self.out.extend_from_slice(b"*-1\r\n"),
            Version::Resp3 => self.null(),
        }
    }

    /// Yes or no: 1 or 0 where there is no such thing.
    pub fn boolean(&mut self, yes: bool) {
        self.out.extend_from_slice(match (self.version, yes) {
            (Version::Resp2, true) => b":1\r\n",
            (Version::Resp2, false) => b":0\r\n",
            (Version::Resp3, true) => b"#t\r\n",
            (Version::Resp3, false) => b"#f\r\n",
        });
    }

    /// The head of an array; so many replies follow.
    #[inline]
    pub fn array(&mut self, count: usize) {
        self.count(b'*', count);
    }

    /// The head of a set, where there is one.
    pub fn set(&mut self, count: usize) {
        let mark = if self.version == Version::Resp3 { b'~' } else { b'*' };
        self.count(mark, count);
    }

    /// The head of a map of so many pairs; without maps, an array of twice as many.
    pub fn map(&mut self, pairs: usize) {
        match self.version {
            Version::Resp2 => self.count(b'*', 2 * pairs),
            Version::Resp3 => self.count(b'%', pairs),
        }
    }

    #[inline]
    fn count(&mut self, mark: u8, count: usize) {
        if let digit @ 0..=9 = count {
            return self.out.extend_from_slice(&[mark, b'0' + digit as u8, b'\r', b'\n']);
        }
        self.out.push(mark);
        self.out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
        self.end();
    }

    #[inline]
    fn end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }
}
