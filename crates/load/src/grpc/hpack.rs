//! Headers: written in full once, by number afterwards; and the one header of a reply that is looked at.
//!
//! Nothing is decoded here that would need the whole table: whoever measures wants the CPU for other things.

use crate::template::TemplateText;

/// Fixed by the standard: entries that both sides know.
const STATIC: usize = 61;
/// `:method: POST`, `:scheme: http`, whole.
const FIXED: [u8; 2] = [0x83, 0x86];
/// Names that both sides know.
const AUTHORITY: usize = 1;
const PATH: usize = 4;
const CONTENT_TYPE: usize = 31;
/// What a server remembers unless it says otherwise, and what an entry takes of it beside its text.
const TABLE: usize = 4096;
const ENTRY: usize = 32;
/// Entries that are learnt at most: their numbers still fit into a byte.
const LEARNT_MAX: usize = 32;

/// `grpc-status`, as most compress it and as it is.
const STATUS_NAMES: [&[u8]; 2] = [b"\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f", b"\x0bgrpc-status"];
/// The statuses 0 to 16, compressed.
const STATUSES: [&[u8]; 17] = [
    b"\x07",
    b"\x0f",
    b"\x17",
    b"\x67",
    b"\x6b",
    b"\x6f",
    b"\x73",
    b"\x77",
    b"\x7b",
    b"\x7f",
    b"\x08\x3f",
    b"\x08\x7f",
    b"\x08\xbf",
    b"\x0b\x3f",
    b"\x0b\x5f",
    b"\x0b\x7f",
    b"\x0b\x9f",
];

/// The headers of a call.
#[derive(Debug)]
pub struct Headers {
    /// In the order in which the server learns them.
    learnt: Vec<Vec<u8>>,
    /// Bytes of the server's table.
    table: usize,
    /// Those that are sent in full every time.
    every_time: Vec<u8>,
}

impl Headers {
    /// What every call has.
    pub fn new(path: &str, host: &str) -> Headers {
        let mut headers = Headers { learnt: Vec::new(), table: 0, every_time: Vec::new() };
        headers.put(PATH, ":path", path);
        headers.put(AUTHORITY, ":authority", host);
        headers.put(CONTENT_TYPE, "content-type", "application/grpc");
        headers.put(0, "te", "trailers");
        headers
    }

    /// One more.
    pub fn add(&mut self, name: &str, value: &str) {
        self.put(0, &name.to_ascii_lowercase(), value);
    }

    /// The headers of the first call on a connection.
    pub fn first(&self) -> Vec<u8> {
        [&FIXED, self.learnt.concat().as_slice(), &self.every_time].concat()
    }

    /// Of all that follow.
    pub fn later(&self) -> Vec<u8> {
        let last = STATIC + self.learnt.len();
        let learnt: Vec<u8> = (0..self.learnt.len()).map(|place| 0x80 | (last - place) as u8).collect();
        [&FIXED, learnt.as_slice(), &self.every_time].concat()
    }

    /// `known` is the number of the name, if both sides know it.
    fn put(&mut self, known: usize, name: &str, value: &str) {
        let size = ENTRY + name.len() + value.len();
        let is_fixed = TemplateText::new(value).places.is_empty();
        let is_learnt = is_fixed && self.table + size <= TABLE && self.learnt.len() < LEARNT_MAX;
        let mut bytes = Vec::new();
        match is_learnt {
            true => integer(&mut bytes, 0x40, 6, known),
            false => integer(&mut bytes, 0x00, 4, known),
        }
        if known == 0 {
            text(&mut bytes, name);
        }
        text(&mut bytes, value);
        if is_learnt {
            self.table += size;
            self.learnt.push(bytes);
        } else {
            self.every_time.extend_from_slice(&bytes);
        }
    }
}

/// The `grpc-status` of a reply's headers, if it stands there in full: for most replies it is one number of the table.
pub fn status(block: &[u8]) -> Option<u16> {
    let after = STATUS_NAMES.iter().find_map(|name| {
        let at = block.windows(name.len()).position(|window| window == *name)?;
        block.get(at + name.len()..)
    })?;
    let (length, rest) = after.split_first()?;
    let value = rest.get(..usize::from(length & 0x7f))?;
    match length & 0x80 {
        0 => std::str::from_utf8(value).ok()?.parse().ok(),
        _ => STATUSES.iter().position(|known| *known == value).map(|status| status as u16),
    }
}

/// A number behind some bits of its own.
fn integer(out: &mut Vec<u8>, mark: u8, bits: u32, value: usize) {
    let most = (1 << bits) - 1;
    if value < most {
        return out.push(mark | value as u8);
    }
    out.push(mark | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// A text as it is, its places as wide as keys.
fn text(out: &mut Vec<u8>, text: &str) {
    integer(out, 0x00, 7, TemplateText::len_of(text));
    out.extend_from_slice(text.as_bytes());
}
