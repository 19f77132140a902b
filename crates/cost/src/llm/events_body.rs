//! A stream of server-sent events: whole events are passed on, and one may be left out.

use bytes::Bytes;

use super::passage::Passages;
use super::sse::{SsePart, SseSplitter};
use super::tally::UsageTally;
use crate::json::JsonScanner;

/// Longest event that is held until it is whole; longer ones are passed on as they come.
pub(super) const HELD_MAX: usize = 256 << 10;

/// The events of a response.
#[derive(Debug)]
pub(super) struct EventsBody {
    splitter: SseSplitter,
    scanner: JsonScanner,
    mark: EndMark,
    /// Whether the event that `include_usage` adds is left out.
    leave_out_usage: bool,
    /// The beginning of an event that is not whole.
    held: Vec<u8>,
    /// Whether the beginning of this event was passed on because the event is too long to be held.
    is_oversized: bool,
    /// The last chunk ended with the CR of an event that was left out: an LF that follows belongs to it.
    leaves_out_lf: bool,
}

/// The data of the event that ends a stream of OpenAI's: not JSON, and no text.
const END_MARK: &[u8] = b"[DONE]";

/// How far the data of an event is that mark.
#[derive(Debug)]
struct EndMark {
    /// Bytes that are; `None` if the data differs.
    read: Option<usize>,
    /// Bytes among them that no JSON starts with.
    unread: u64,
}

impl Default for EndMark {
    fn default() -> EndMark {
        EndMark { read: Some(0), unread: 0 }
    }
}

impl EndMark {
    /// The unread bytes that count, once the data cannot be the mark any more.
    fn unread(&mut self, data: &[u8], unread: u64) -> u64 {
        self.unread = self.unread.saturating_add(unread);
        self.read = self.read.filter(|read| END_MARK.get(*read..).is_some_and(|rest| rest.starts_with(data)));
        match &mut self.read {
            Some(read) => {
                *read += data.len();
                0
            }
            None => std::mem::take(&mut self.unread),
        }
    }
}

impl EventsBody {
    pub(super) fn new(leave_out_usage: bool) -> EventsBody {
        EventsBody {
            splitter: SseSplitter::new(),
            scanner: JsonScanner::tolerant(),
            mark: EndMark::default(),
            leave_out_usage,
            held: Vec::new(),
            is_oversized: false,
            leaves_out_lf: false,
        }
    }

    pub(super) fn push(&mut self, chunk: &Bytes, tally: &mut UsageTally, out: &mut Passages<'_>) {
        let (mut read, mut passed) = (0, 0);
        if !chunk.is_empty() && std::mem::take(&mut self.leaves_out_lf) && chunk.first() == Some(&b'\n') {
            let (_, length) = self.splitter.next(chunk);
            (read, passed) = (length, length);
        }
        while let Some(rest) = chunk.get(read..).filter(|rest| !rest.is_empty()) {
            let (part, length) = self.splitter.next(rest);
            read += length;
            match part {
                SsePart::Data(data) => {
                    let unread = self.scanner.feed_or_skip(data, tally);
                    tally.add_opaque(self.mark.unread(data, unread));
                }
                SsePart::Other => {}
                SsePart::End => {
                    self.end_event(chunk, passed..read, tally, out);
                    passed = read;
                }
            }
        }
        self.hold(chunk, passed, tally, out);
    }

    fn end_event(
        &mut self,
        chunk: &Bytes,
        range: std::ops::Range<usize>,
        tally: &mut UsageTally,
        out: &mut Passages<'_>,
    ) {
        let is_json = self.scanner.is_done();
        self.scanner = JsonScanner::tolerant();
        self.mark = EndMark::default();
        let left_out = self.leave_out_usage && is_json && !self.is_oversized && tally.is_usage_only();
        tally.end_event();
        let held = std::mem::take(&mut self.held);
        self.is_oversized = false;
        if !left_out {
            return out.add_whole(held, chunk, range, tally.point());
        }
        self.leaves_out_lf = range.end == chunk.len() && chunk.last() == Some(&b'\r');
        // A leading LF is the end of the event before, whose CR was the last byte of its chunk.
        if held.first().or(chunk.get(range.start)) == Some(&b'\n') {
            out.add_whole(vec![b'\n'], chunk, range.end..range.end, tally.point());
        }
    }

    /// Keeps what follows the last whole event.
    fn hold(&mut self, chunk: &Bytes, from: usize, tally: &UsageTally, out: &mut Passages<'_>) {
        let rest = chunk.get(from..).unwrap_or_default();
        if rest.is_empty() {
            return;
        }
        if self.is_oversized || self.held.len() + rest.len() > HELD_MAX {
            self.is_oversized = true;
            let held = std::mem::take(&mut self.held);
            out.add_whole(held, chunk, from..chunk.len(), tally.point());
        } else {
            self.held.extend_from_slice(rest);
        }
    }

    /// The end of the body: what is held is passed on.
    pub(super) fn end(&mut self, tally: &mut UsageTally, out: &mut Passages<'_>) {
        tally.end_event();
        let held = std::mem::take(&mut self.held);
        out.add_whole(held, &Bytes::new(), 0..0, tally.point());
    }

    /// Gives up the event that is not whole; true if its beginning was passed on.
    pub(super) fn give_up(&mut self) -> bool {
        self.held = Vec::new();
        std::mem::take(&mut self.is_oversized)
    }
}
