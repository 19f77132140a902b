//! HTTP/2 frames: nine bytes of head, and what they say.

use crate::reply::MalformedReply;

/// Bytes of a frame's head.
pub const HEAD: usize = 9;
/// The longest frame that nobody has to ask for.
pub const FRAME_MAX: usize = 1 << 14;

/// What says in front of a message that it is not compressed, and how long it is.
pub const PREFIX: usize = 5;
/// The most that the other side may ever be allowed to send.
pub const WINDOW_MAX: u32 = (1 << 31) - 1;
/// What it is allowed to send from the start.
pub const WINDOW_INITIAL: u32 = (1 << 16) - 1;

/// The last of its stream.
pub const END_STREAM: u8 = 0x1;
/// Said in answer.
pub const ACK: u8 = 0x1;
/// No more headers follow.
pub const END_HEADERS: u8 = 0x4;
/// Something was added that means nothing.
const PADDED: u8 = 0x8;

/// Settings by number.
pub const ENABLE_PUSH: u16 = 2;
pub const MAX_STREAMS: u16 = 3;
pub const INITIAL_WINDOW: u16 = 4;

/// What a frame is.
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

/// One frame as it came.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    pub kind: FrameKind,
    flags: u8,
    pub stream: u32,
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame at the front; `None` if its end has not come yet.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Result<Option<Frame<'a>>, MalformedReply> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else { return Ok(None) };
        let [long, middle, short, kind, flags, a, b, c, d] = *head;
        let length = u32::from_be_bytes([0, long, middle, short]) as usize;
        if length > FRAME_MAX {
            return Err(MalformedReply("a frame longer than was allowed"));
        }
        let stream = u32::from_be_bytes([a & 0x7f, b, c, d]);
        Ok(rest.get(..length).map(|payload| Frame { kind: FrameKind(kind), flags, stream, payload }))
    }

    /// Its bytes, head and all.
    pub fn length(&self) -> usize {
        HEAD + self.payload.len()
    }

    /// Whether a flag is set.
    pub fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The payload without what was added.
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

    /// The number that the payload has at `at`.
    pub fn number(&self, at: usize) -> Result<u32, MalformedReply> {
        let bytes = self.payload.get(at..).and_then(|rest| rest.first_chunk::<4>());
        bytes.map(|bytes| u32::from_be_bytes(*bytes)).ok_or(MalformedReply("a frame that is too short"))
    }

    /// The settings in it.
    pub fn settings(&self) -> Result<impl Iterator<Item = (u16, u32)>, MalformedReply> {
        let (pairs, rest) = self.payload.as_chunks::<6>();
        match rest {
            [] => Ok(pairs
                .iter()
                .map(|[a, b, c, d, e, f]| (u16::from_be_bytes([*a, *b]), u32::from_be_bytes([*c, *d, *e, *f])))),
            _ => Err(MalformedReply("half a setting")),
        }
    }
}

/// The head of a frame.
pub fn head(length: usize, kind: FrameKind, flags: u8, stream: u32) -> [u8; HEAD] {
    let [_, long, middle, short] = (length as u32).to_be_bytes(); // whoever calls keeps to FRAME_MAX
    let [a, b, c, d] = stream.to_be_bytes();
    [long, middle, short, kind.0, flags, a, b, c, d]
}

/// Appends a whole frame.
pub fn put(out: &mut Vec<u8>, kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&head(payload.len(), kind, flags, stream));
    out.extend_from_slice(payload);
}
