//! A response that is one JSON text: passed on as it comes, but for lists of responses, which pass item by item.

use bytes::Bytes;

use super::events_body::HELD_MAX;
use super::passage::Passages;
use super::tally::UsageTally;
use crate::json::{JsonEvent, JsonPart, JsonPath, JsonScanner, JsonSink};

/// The text of a response.
#[derive(Debug)]
pub(super) struct JsonBody {
    scanner: JsonScanner,
    /// Bytes read by the scanner.
    read: u64,
    /// Whether a list is a stream of responses, as Gemini sends it.
    streams_lists: bool,
    is_list: bool,
    is_oversized: bool,
    held: Vec<u8>,
}

/// Notes where items of the list at the root end.
struct ItemEnds<'a> {
    tally: &'a mut UsageTally,
    is_list: bool,
    last: Option<u64>,
}

impl JsonSink for ItemEnds<'_> {
    fn part(&mut self, path: &JsonPath, kind: JsonPart, bytes: &[u8]) {
        self.tally.part(path, kind, bytes);
    }

    fn event(&mut self, path: &JsonPath, event: JsonEvent<'_>, offset: u64) {
        self.tally.event(path, event, offset);
        self.is_list |= event == JsonEvent::List && path.depth() == 0;
        if event == JsonEvent::End && path.depth() <= 1 {
            self.last = Some(offset);
        }
    }
}

impl JsonBody {
    pub(super) fn new(streams_lists: bool) -> JsonBody {
        JsonBody {
            scanner: JsonScanner::tolerant(),
            read: 0,
            streams_lists,
            is_list: false,
            is_oversized: false,
            held: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, chunk: &Bytes, tally: &mut UsageTally, out: &mut Passages<'_>) {
        let mut ends = ItemEnds { tally, is_list: self.is_list, last: None };
        let unread = self.scanner.feed_or_skip(chunk, &mut ends);
        self.is_list = ends.is_list;
        let last = ends.last;
        tally.add_opaque(unread);
        if self.scanner.is_done() {
            // A server that knows the length of the response does not ask for its end.
            tally.end_body();
        }
        let whole = match last.and_then(|last| usize::try_from(last.saturating_sub(self.read)).ok()) {
            Some(_) if self.scanner.is_done() => chunk.len(),
            Some(last) => (last + 1).min(chunk.len()),
            None => 0,
        };
        self.read = self.read.saturating_add(chunk.len() as u64);
        let end = tally.point();
        let is_passed = self.scanner.is_faulty() || self.scanner.is_done() || !(self.is_list && self.streams_lists);
        if is_passed {
            return out.add_whole(std::mem::take(&mut self.held), chunk, 0..chunk.len(), end);
        }
        if whole > 0 {
            self.is_oversized = false;
            out.add_whole(std::mem::take(&mut self.held), chunk, 0..whole, end);
        }
        let rest = chunk.get(whole..).unwrap_or_default();
        if self.is_oversized || self.held.len() + rest.len() > HELD_MAX {
            self.is_oversized = true;
            out.add_whole(std::mem::take(&mut self.held), chunk, whole..chunk.len(), end);
        } else {
            self.held.extend_from_slice(rest);
        }
    }

    /// The end of the body: what is held is passed on.
    pub(super) fn end(&mut self, tally: &mut UsageTally, out: &mut Passages<'_>) {
        tally.end_event();
        out.add_whole(std::mem::take(&mut self.held), &Bytes::new(), 0..0, tally.point());
    }

    /// Gives up the item that is not whole; whether the body is a list that another item can follow.
    pub(super) fn give_up(&mut self) -> bool {
        self.held = Vec::new();
        self.is_list && self.streams_lists && !self.scanner.is_done() && !self.is_oversized
    }
}
