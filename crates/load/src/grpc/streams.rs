//! The streams of a connection: which are under way, what has come of each, and what the server allows.

use std::collections::VecDeque;

use super::hpack;
use super::wire::{self, ACK, END_STREAM, Frame, FrameKind, PREFIX, WINDOW_INITIAL, WINDOW_MAX};
use crate::lost::ConnectionLost;
use crate::reply::{MalformedReply, ReplyVerdict};

/// The stream of the request that teaches the headers.
pub const FIRST: u32 = 1;
/// The last one that a connection has.
const LAST: u32 = (1 << 31) - 1;
/// Streams between the oldest one under way and the newest, at most: one that hangs does not make the rest endless.
const SPAN_MAX: usize = 1 << 16;
/// How much of a message is kept: what it begins with says whether the request may pass.
const KEPT: usize = 16;
/// What may come before the server is told that it may send as much again.
const UPDATE_AFTER: u32 = 1 << 24;

/// gRPC's statuses by number.
const STATUSES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];
/// Where a reply has no message, and no status that can be read without the table.
const UNKNOWN: u16 = 2;

/// The streams of one connection.
#[derive(Clone, Debug)]
pub struct Streams {
    /// From the oldest one under way to the newest, the answered ones between them too.
    slots: VecDeque<StreamSlot>,
    /// The number of the first slot.
    oldest: u32,
    /// The number of the next stream.
    next: u32,
    /// How many are under way.
    open: usize,
    /// The one that teaches the headers is among them.
    is_learning: bool,
    /// How many the server allows.
    allowed: usize,
    /// Bytes of messages that the server takes now.
    window: i64,
    /// Bytes of a message.
    message: usize,
    /// Bytes of messages that have come since the server was told that it may go on.
    received: u32,
    /// The server is leaving, or numbers have run out: what is under way is the last.
    is_last: bool,
    /// The last status that stood in full in a reply and was no success: later ones refer to it.
    failure: u16,
}

#[derive(Clone, Copy, Debug)]
struct StreamSlot {
    start: u64,
    kept: [u8; KEPT],
    length: u8,
    is_done: bool,
}

impl StreamSlot {
    #[inline]
    fn keep(&mut self, bytes: &[u8]) {
        let length = usize::from(self.length);
        let room = self.kept.get_mut(length..).unwrap_or_default();
        let count = room.len().min(bytes.len());
        if let (Some(room), Some(bytes)) = (room.get_mut(..count), bytes.get(..count)) {
            room.copy_from_slice(bytes);
        }
        self.length += count as u8;
    }

    fn kept(&self) -> &[u8] {
        self.kept.get(..usize::from(self.length)).unwrap_or_default()
    }
}

impl Streams {
    /// None so far; a message of a request has so many bytes, its prefix among them.
    pub fn new(message: usize) -> Streams {
        Streams {
            slots: VecDeque::new(),
            oldest: FIRST,
            next: FIRST,
            open: 0,
            is_learning: false,
            allowed: usize::MAX,
            window: i64::from(WINDOW_INITIAL),
            message,
            received: 0,
            is_last: false,
            failure: UNKNOWN,
        }
    }

    /// The opening has gone out, and the first request with it.
    pub fn open(&mut self, now: u64) {
        self.clear();
        self.begin(std::iter::once(now));
        self.is_learning = true;
    }

    /// The number of the next stream.
    #[inline]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Requests under way that count.
    pub fn under_way(&self) -> usize {
        self.open - usize::from(self.is_learning)
    }

    /// When the oldest one began.
    pub fn oldest(&self) -> Option<u64> {
        self.slots.front().map(|slot| slot.start)
    }

    /// How many more the pipeline, the server and its window allow.
    #[inline]
    pub fn room(&self, pipeline: usize) -> usize {
        if self.is_last || self.slots.len() >= SPAN_MAX {
            return 0;
        }
        let streams = pipeline.min(self.allowed).saturating_sub(self.open);
        let messages = usize::try_from(self.window).unwrap_or(0) / self.message.max(1);
        let numbers = (LAST - self.next) as usize / 2;
        streams.min(messages).min(numbers)
    }

    /// So many more are under way.
    #[inline]
    pub fn begin(&mut self, starts: impl Iterator<Item = u64>) {
        let before = self.slots.len();
        self.slots.extend(starts.map(|start| StreamSlot { start, kept: [0; KEPT], length: 0, is_done: false }));
        let begun = self.slots.len() - before;
        self.next += 2 * begun as u32;
        self.open += begun;
        self.window -= (begun * self.message) as i64;
        self.is_last |= LAST - self.next < 4; // the next connection begins anew
    }

    /// Forgets all of it.
    pub fn clear(&mut self) {
        let slots = std::mem::take(&mut self.slots);
        *self = Streams { slots, ..Streams::new(self.message) };
        self.slots.clear();
    }

    /// Reads whole frames, and tells how many bytes those were.
    #[inline]
    pub fn take(
        &mut self,
        bytes: &[u8],
        answer: &mut Vec<u8>,
        mut on_reply: impl FnMut(u64, ReplyVerdict, &[u8]),
    ) -> Result<usize, ConnectionLost> {
        let mut used = 0;
        while let Some(frame) = Frame::read(bytes.get(used..).unwrap_or_default())? {
            used += frame.length();
            match frame.kind {
                FrameKind::DATA => {
                    self.received += frame.payload.len() as u32;
                    self.slot(frame.stream)?.keep(frame.content()?);
                    if frame.is(END_STREAM) {
                        self.finish(&frame, b"", &mut on_reply)?;
                    }
                }
                FrameKind::HEADERS if frame.is(END_STREAM) => self.finish(&frame, frame.content()?, &mut on_reply)?,
                // Some servers also reset what they have answered.
                FrameKind::RST_STREAM if self.slot(frame.stream).is_ok() => {
                    let verdict = ReplyVerdict::Failed(status_of_reset(frame.number(0)?));
                    self.end(frame.stream, Some(verdict), &mut on_reply)?;
                }
                _ => self.control(&frame, answer)?,
            }
        }
        if self.received >= UPDATE_AFTER {
            wire::put(answer, FrameKind::WINDOW_UPDATE, 0, 0, &self.received.to_be_bytes());
            self.received = 0;
        }
        match self.is_last && self.open == 0 {
            true => Err(ConnectionLost::Closed),
            false => Ok(used),
        }
    }

    /// What the server says about the connection, not about a request.
    fn control(&mut self, frame: &Frame<'_>, answer: &mut Vec<u8>) -> Result<(), ConnectionLost> {
        match frame.kind {
            FrameKind::SETTINGS if !frame.is(ACK) => {
                for (name, value) in frame.settings()? {
                    match name {
                        wire::MAX_STREAMS => self.allowed = value as usize,
                        wire::INITIAL_WINDOW if (value as usize) < self.message => {
                            return Err(ConnectionLost::Malformed("its windows are too small for a request"));
                        }
                        _ => {}
                    }
                }
                wire::put(answer, FrameKind::SETTINGS, ACK, 0, &[]);
            }
            FrameKind::PING if !frame.is(ACK) => wire::put(answer, FrameKind::PING, ACK, 0, frame.payload),
            FrameKind::WINDOW_UPDATE if frame.stream == 0 => {
                self.window += i64::from(frame.number(0)? & WINDOW_MAX);
                if self.window > i64::from(WINDOW_MAX) {
                    return Err(ConnectionLost::Malformed("a window wider than there is"));
                }
            }
            FrameKind::GOAWAY if frame.number(4)? != 0 => {
                return Err(ConnectionLost::Malformed("the server ended it with an error"));
            }
            FrameKind::GOAWAY => self.is_last = true,
            FrameKind::PUSH_PROMISE => return Err(ConnectionLost::Malformed("a promise that was not wanted")),
            _ => {}
        }
        Ok(())
    }

    /// The stream's last frame has come, with these headers if it was one of headers.
    #[inline]
    fn finish(
        &mut self,
        frame: &Frame<'_>,
        trailers: &[u8],
        on_reply: &mut impl FnMut(u64, ReplyVerdict, &[u8]),
    ) -> Result<(), MalformedReply> {
        // Once the server has said a status, a number of the table stands for it.
        let status = if trailers.len() > 2 { hpack::status(trailers) } else { None };
        let failure = status.filter(|status| *status != 0);
        self.failure = failure.unwrap_or(self.failure);
        self.end(frame.stream, failure.map(ReplyVerdict::Failed), on_reply)
    }

    #[inline]
    fn end(
        &mut self,
        stream: u32,
        failed: Option<ReplyVerdict>,
        on_reply: &mut impl FnMut(u64, ReplyVerdict, &[u8]),
    ) -> Result<(), MalformedReply> {
        let failure = self.failure;
        let slot = self.slot(stream)?;
        slot.is_done = true;
        let start = slot.start;
        let verdict = failed.or_else(|| verdict(slot.kept())).unwrap_or(ReplyVerdict::Failed(failure));
        self.open -= 1;
        while self.slots.front().is_some_and(|slot| slot.is_done) {
            self.slots.pop_front();
            self.oldest += 2;
        }
        if self.is_learning && stream == FIRST {
            self.is_learning = false;
            return Ok(());
        }
        let told = match verdict {
            ReplyVerdict::Failed(status) => STATUSES.get(usize::from(status)).copied().unwrap_or_default(),
            _ => "",
        };
        on_reply(start, verdict, told.as_bytes());
        Ok(())
    }

    /// A stream that is under way.
    #[inline]
    fn slot(&mut self, stream: u32) -> Result<&mut StreamSlot, MalformedReply> {
        let place = stream.checked_sub(self.oldest).filter(|distance| distance % 2 == 0).map(|distance| distance / 2);
        let slot = place.and_then(|place| self.slots.get_mut(place as usize)).filter(|slot| !slot.is_done);
        slot.ok_or(MalformedReply("a reply that nobody asked for"))
    }
}

/// What the beginning of a message says; `None` if there is none, or if it is compressed, which nobody asked for.
///
/// The first field is 1 where a request may pass: `allowed`, or Envoy's code; a truth value that is false is left out.
/// Where the first field is a message, it is one of a list of statuses, as gubernator answers: there 1 means over the
/// limit, and 0 is left out.
fn verdict(kept: &[u8]) -> Option<ReplyVerdict> {
    const NUMBER: u8 = 1 << 3;
    const MESSAGE: u8 = 1 << 3 | 2;
    let ([0, ..], message) = kept.split_first_chunk::<PREFIX>()? else { return None };
    Some(match message {
        [NUMBER, 1, ..] | [MESSAGE, 0, ..] => ReplyVerdict::Allowed,
        [MESSAGE, _, NUMBER, 1, ..] => ReplyVerdict::Denied,
        [MESSAGE, ..] => ReplyVerdict::Allowed,
        _ => ReplyVerdict::Denied,
    })
}

/// What gRPC calls the reason for which a stream was ended.
fn status_of_reset(code: u32) -> u16 {
    match code {
        7 => 14, // refused: unavailable
        8 => 1,  // cancelled
        11 => 8, // too much of something: exhausted
        12 => 7, // not safe enough: permission denied
        _ => 13, // internal
    }
}
