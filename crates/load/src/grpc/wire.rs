//! HTTP/2 frames.

use crate::reply::MalformedReply;

/// Length of a frame header.
pub const HEAD: usize = 9;
/// Default maximum length of a frame.
pub const FRAME_MAX: usize = 1 << 14;

/// Length of the prefix of a gRPC message: the compression flag and the length.
pub const PREFIX: usize = 5;
/// Largest flow-control window.
pub const WINDOW_MAX: u32 = (1 << 31) - 1;
/// Initial flow-control window.
pub const WINDOW_INITIAL: u32 = (1 << 16) - 1;

/// Flag: the last frame of its stream.
pub const END_STREAM: u8 = 0x1;
/// Flag: acknowledges SETTINGS or PING.
pub const ACK: u8 = 0x1;
/// Flag: the header block is complete.
pub const END_HEADERS: u8 = 0x4;
/// Flag: the payload is padded.
const PADDED: u8 = 0x8;

/// Identifiers of settings.
pub const ENABLE_PUSH: u16 = 2;
pub const MAX_STREAMS: u16 = 3;
pub const INITIAL_WINDOW: u16 = 4;

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameKind(pub u8);

impl FrameKind {
    pub const DATA: FrameKind = FrameKind(0);
    pub const HEADERS: FrameKind = FrameKind(1);
    pub const RST_STREAM: FrameKind = FrameKind(3);
    pub const SETTINGS: FrameKind = FrameKind(4);
    pub const PUSH_PROMISE: FrameKind = FrameKind(5);
    pub const PING: FrameKind = FrameKind(6);
    pub const GOAWAY: FrameKind = FrameKind(7);
    pub const WINDOW_UPDATE: FrameKind = FrameKind(8);
}

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    pub kind: FrameKind,
    flags: u8,
    pub stream: u32,
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The first frame; `None` if it is incomplete.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Result<Option<Frame<'a>>, MalformedReply> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else { return Ok(None) };
        let [long, middle, short, kind, flags, a, b, c, d] = *head;
        let length = u32::from_be_bytes([0, long, middle, short]) as usize;
        if length > FRAME_MAX {
            return Err(MalformedReply("a frame above the maximum length"));
        }
        let stream = u32::from_be_bytes([a & 0x7f, b, c, d]);
        Ok(rest.get(..length).map(|payload| Frame { kind: FrameKind(kind), flags, stream, payload }))
    }

    /// Length in bytes, including the header.
    pub fn length(&self) -> usize {
        HEAD + self.payload.len()
    }

    /// True if the flag is set.
    pub fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The payload without padding.
    #[inline]
    pub fn content(&self) -> Result<&'a [u8], MalformedReply> {
        if !self.is(PADDED) {
            return Ok(self.payload);
        }
        let content = self.payload.split_first().and_then(|(padding, rest)| {
            let end = rest.len().checked_sub(usize::from(*padding))?;
            rest.get(..end)
        });
        content.ok_or(MalformedReply("more padding than frame"))
    }

    /// The 32-bit integer at offset `at` of the payload.
    pub fn number(&self, at: usize) -> Result<u32, MalformedReply> {
        let bytes = self.payload.get(at..).and_then(|rest| rest.first_chunk::<4>());
        bytes.map(|bytes| u32::from_be_bytes(*bytes)).ok_or(MalformedReply("a frame that is too short"))
    }

    /// The settings in the payload.
    pub fn settings(&self) -> Result<impl Iterator<Item = (u16, u32)>, MalformedReply> {
        let (pairs, rest) = self.payload.as_chunks::<6>();
        match rest {
            [] => Ok(pairs
                .iter()
                .map(|[a, b, c, d, e, f]| (u16::from_be_bytes([*a, *b]), u32::from_be_bytes([*c, *d, *e, *f])))),
            _ => Err(MalformedReply("an incomplete setting")),
        }
    }
}

/// The header of a frame.
pub fn head(length: usize, kind: FrameKind, flags: u8, stream: u32) -> [u8; HEAD] {
    let [_, long, middle, short] = (length as u32).to_be_bytes(); // callers keep to FRAME_MAX
    let [a, b, c, d] = stream.to_be_bytes();
    [long, middle, short, kind.0, flags, a, b, c, d]
}

/// Appends a frame.
pub fn put(out: &mut Vec<u8>, kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&head(payload.len(), kind, flags, stream));
    out.extend_from_slice(payload);
}
