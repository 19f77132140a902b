//! HPACK: encodes request headers, literally once and by index afterwards, and finds `grpc-status` in a reply.
//!
//! There is no decoder with a dynamic table: a load generator must spend little CPU per reply.

use crate::template::TemplateText;

/// Number of entries of the static table.
const STATIC: usize = 61;
/// `:method: POST` and `:scheme: http`, both in the static table.
const FIXED: [u8; 2] = [0x83, 0x86];
/// Indices of names in the static table.
const AUTHORITY: usize = 1;
const PATH: usize = 4;
const CONTENT_TYPE: usize = 31;
/// Default size of the server's dynamic table, and the overhead of an entry.
const TABLE: usize = 4096;
const ENTRY: usize = 32;
/// Maximum number of indexed headers: their indices fit into one byte.
const INDEXED_MAX: usize = 32;

/// `grpc-status`, Huffman-coded and as a literal.
const STATUS_NAMES: [&[u8]; 2] = [b"\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f", b"\x0bgrpc-status"];
/// The statuses 0 to 16, Huffman-coded.
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
    /// Headers of the dynamic table, in the order of insertion.
    indexed: Vec<Vec<u8>>,
    /// Size of the dynamic table.
    table: usize,
    /// Headers sent literally with every call.
    literal: Vec<u8>,
}

impl Headers {
    /// The headers that every call has.
    pub fn new(path: &str, host: &str) -> Headers {
        let mut headers = Headers { indexed: Vec::new(), table: 0, literal: Vec::new() };
        headers.put(PATH, ":path", path);
        headers.put(AUTHORITY, ":authority", host);
        headers.put(CONTENT_TYPE, "content-type", "application/grpc");
        headers.put(0, "te", "trailers");
        headers
    }

    /// Adds a header.
    pub fn add(&mut self, name: &str, value: &str) {
        self.put(0, &name.to_ascii_lowercase(), value);
    }

    /// The header block of the first call on a connection.
    pub fn first(&self) -> Vec<u8> {
        [&FIXED, self.indexed.concat().as_slice(), &self.literal].concat()
    }

    /// The header block of all later calls.
    pub fn later(&self) -> Vec<u8> {
        let last = STATIC + self.indexed.len();
        let indexed: Vec<u8> = (0..self.indexed.len()).map(|place| 0x80 | (last - place) as u8).collect();
        [&FIXED, indexed.as_slice(), &self.literal].concat()
    }

    /// `known` is the index of the name in the static table, or 0.
    fn put(&mut self, known: usize, name: &str, value: &str) {
        let size = ENTRY + name.len() + value.len();
        let is_fixed = TemplateText::new(value).places.is_empty();
        let is_indexed = is_fixed && self.table + size <= TABLE && self.indexed.len() < INDEXED_MAX;
        let mut bytes = Vec::new();
        match is_indexed {
            true => integer(&mut bytes, 0x40, 6, known),
            false => integer(&mut bytes, 0x00, 4, known),
        }
        if known == 0 {
            text(&mut bytes, name);
        }
        text(&mut bytes, value);
        if is_indexed {
            self.table += size;
            self.indexed.push(bytes);
        } else {
            self.literal.extend_from_slice(&bytes);
        }
    }
}

/// The `grpc-status` of a header block, if it is a literal: in most replies it is an index of the dynamic table.
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

/// An HPACK integer behind a prefix.
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

/// A literal string, with room for keys in place of placeholders.
fn text(out: &mut Vec<u8>, text: &str) {
    integer(out, 0x00, 7, TemplateText::len_of(text));
    out.extend_from_slice(text.as_bytes());
}
