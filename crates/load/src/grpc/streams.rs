//! The streams of a connection: those in flight, the bytes received on each, and the server's limits.

use std::collections::VecDeque;

use tollgate_proto::STATUS_NAMES;

use super::hpack;
use super::wire::{self, ACK, END_STREAM, Frame, FrameKind, PREFIX, WINDOW_INITIAL, WINDOW_MAX};
use crate::lost::ConnectionEnded;
use crate::reply::{MalformedReply, ReplyVerdict};

/// Stream of the first request, which fills the server's header table.
pub const FIRST: u32 = 1;
/// Highest stream number.
const LAST: u32 = (1 << 31) - 1;
/// Maximum distance of the oldest and the newest stream in flight, so that a stuck stream does not grow the queue.
const SPAN_MAX: usize = 1 << 16;
/// Bytes kept of a message: its beginning holds the decision.
const KEPT: usize = 16;
/// Bytes received before a WINDOW_UPDATE is sent.
const UPDATE_AFTER: u32 = 1 << 24;

/// Status of a reply without a message whose `grpc-status` is not a literal.
const UNKNOWN: u16 = 2;

/// The streams of one connection.
#[derive(Clone, Debug)]
pub struct Streams {
    /// From the oldest stream in flight to the newest, including answered ones between them.
    slots: VecDeque<StreamSlot>,
    /// Stream number of the first slot.
    oldest: u32,
    /// Stream number of the next request.
    next: u32,
    /// Number of streams in flight.
    open: usize,
    /// True while the first request is in flight.
    is_learning: bool,
    /// Maximum number of concurrent streams, set by the server.
    allowed: usize,
    /// Flow-control window for sending.
    window: i64,
    /// Size of a request message.
    message: usize,
    /// Bytes received since the last WINDOW_UPDATE.
    received: u32,
    /// True after GOAWAY, or when stream numbers have run out: no new streams.
    is_last: bool,
    /// The last literal status other than OK: later replies refer to it by index.
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
    /// No streams; a request message has `message` bytes, including its prefix.
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

    /// The opening was sent, including the first request.
    pub fn open(&mut self, now: u64) {
        self.clear();
        self.begin(std::iter::once(now));
        self.is_learning = true;
    }

    /// Stream number of the next request.
    #[inline]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Number of requests in flight, without the first.
    pub fn in_flight(&self) -> usize {
        self.open - usize::from(self.is_learning)
    }

    /// Start time of the oldest stream in flight.
    pub fn oldest(&self) -> Option<u64> {
        self.slots.front().map(|slot| slot.start)
    }

    /// How many more requests the pipeline, the server and its window allow.
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

    /// Adds requests with these start times.
    #[inline]
    pub fn begin(&mut self, starts: impl Iterator<Item = u64>) {
        let before = self.slots.len();
        self.slots.extend(starts.map(|start| StreamSlot { start, kept: [0; KEPT], length: 0, is_done: false }));
        let begun = self.slots.len() - before;
        self.next += 2 * begun as u32;
        self.open += begun;
        self.window -= (begun * self.message) as i64;
        self.is_last |= LAST - self.next < 4; // the next connection starts over
    }

    /// Resets everything for a new connection.
    pub fn clear(&mut self) {
        let slots = std::mem::take(&mut self.slots);
        *self = Streams { slots, ..Streams::new(self.message) };
        self.slots.clear();
    }

    /// Reads whole frames, and returns the number of bytes read.
    #[inline]
    pub fn take(
        &mut self,
        bytes: &[u8],
        answer: &mut Vec<u8>,
        mut on_reply: impl FnMut(u64, ReplyVerdict, &[u8]),
    ) -> Result<usize, ConnectionEnded> {
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
                // Some servers reset a stream after its reply.
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
            true => Err(ConnectionEnded::Closed),
            false => Ok(used),
        }
    }

    /// Handles a frame of the connection, not of a request.
    fn control(&mut self, frame: &Frame<'_>, answer: &mut Vec<u8>) -> Result<(), ConnectionEnded> {
        match frame.kind {
            FrameKind::SETTINGS if !frame.is(ACK) => {
                for (name, value) in frame.settings()? {
                    match name {
                        wire::MAX_STREAMS => self.allowed = value as usize,
                        wire::INITIAL_WINDOW if (value as usize) < self.message => {
                            return Err(ConnectionEnded::Malformed("its windows are smaller than a request"));
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
                    return Err(ConnectionEnded::Malformed("a window above the maximum"));
                }
            }
            FrameKind::GOAWAY if frame.number(4)? != 0 => {
                return Err(ConnectionEnded::Malformed("the server closed the connection with an error"));
            }
            FrameKind::GOAWAY => self.is_last = true,
            FrameKind::PUSH_PROMISE => return Err(ConnectionEnded::Malformed("a server push")),
            _ => {}
        }
        Ok(())
    }

    /// Ends a stream after its last frame, which has these trailers if it is a HEADERS frame.
    #[inline]
    fn finish(
        &mut self,
        frame: &Frame<'_>,
        trailers: &[u8],
        on_reply: &mut impl FnMut(u64, ReplyVerdict, &[u8]),
    ) -> Result<(), MalformedReply> {
        // Once the server has sent a status literally, it sends an index of the dynamic table.
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
        let name = match verdict {
            ReplyVerdict::Failed(status) => STATUS_NAMES.get(usize::from(status)).copied().unwrap_or_default(),
            _ => "",
        };
        on_reply(start, verdict, name.as_bytes());
        Ok(())
    }

    /// A stream in flight.
    #[inline]
    fn slot(&mut self, stream: u32) -> Result<&mut StreamSlot, MalformedReply> {
        let place = stream.checked_sub(self.oldest).filter(|distance| distance % 2 == 0).map(|distance| distance / 2);
        let slot = place.and_then(|place| self.slots.get_mut(place as usize)).filter(|slot| !slot.is_done);
        slot.ok_or(MalformedReply("a reply without a request"))
    }
}

/// The decision at the beginning of a message; `None` if there is no message, or if it is compressed.
///
/// The first field is 1 if the request is allowed: `allowed`, or Envoy's code; a boolean that is false is omitted. If
/// the first field is a message, it is one of gubernator's list of statuses: there 1 means over the limit, and 0 is
/// omitted.
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

/// The gRPC status of an HTTP/2 error code in RST_STREAM.
fn status_of_reset(code: u32) -> u16 {
    match code {
        7 => 14, // REFUSED_STREAM: unavailable
        8 => 1,  // cancelled
        11 => 8, // ENHANCE_YOUR_CALM: resource exhausted
        12 => 7, // INADEQUATE_SECURITY: permission denied
        _ => 13, // internal
    }
}
