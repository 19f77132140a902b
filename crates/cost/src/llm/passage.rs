//! What is passed on of a response, with the tokens that it has.

use std::ops::Range;

use bytes::Bytes;

/// Bytes to pass on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The bytes.
    pub bytes: Bytes,
    /// Where the response stands at their end.
    pub end: StreamPoint,
}

/// Where a response stands at the end of a passage; by default, before the first one. A stream can be ended there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamPoint {
    /// Tokens generated so far; an estimate until they are reported, so that it may fall at the end.
    pub output_tokens: u64,
    /// Whether the response has said anything.
    pub(super) has_started: bool,
    /// The highest index of a choice.
    pub(super) last_choice: u64,
    /// A content block of Anthropic that has not been stopped.
    pub(super) open_block: Option<u64>,
    /// The number of the last event of a stream of responses.
    pub(super) sequence: Option<u64>,
    /// Whether the last byte is a CR, whose LF may not have come yet.
    pub(super) after_cr: bool,
}

/// Passages of one chunk. Neighbours with the same number of tokens are one passage.
pub(super) struct Passages<'a> {
    out: &'a mut Vec<Passage>,
    /// A part of the chunk that is not in `out` yet, and its end.
    open: Option<(Range<usize>, StreamPoint)>,
}

impl<'a> Passages<'a> {
    pub(super) fn new(out: &'a mut Vec<Passage>) -> Passages<'a> {
        Passages { out, open: None }
    }

    /// Adds what was held of earlier chunks, followed by a part of this one.
    pub(super) fn add_whole(&mut self, mut held: Vec<u8>, chunk: &Bytes, range: Range<usize>, end: StreamPoint) {
        let last = chunk.get(range.clone()).and_then(<[u8]>::last).or(held.last());
        let end = StreamPoint { after_cr: last == Some(&b'\r'), ..end };
        if !held.is_empty() {
            self.close(chunk);
            held.extend_from_slice(chunk.get(range).unwrap_or_default());
            self.out.push(Passage { bytes: Bytes::from(held), end });
            return;
        }
        match &mut self.open {
            Some((open, point)) if open.end == range.start && point.output_tokens == end.output_tokens => {
                open.end = range.end;
                *point = end;
            }
            _ => {
                self.close(chunk);
                self.open = (!range.is_empty()).then_some((range, end));
            }
        }
    }

    /// The end of the chunk.
    pub(super) fn close(&mut self, chunk: &Bytes) {
        if let Some((range, end)) = self.open.take() {
            self.out.push(Passage { bytes: chunk.slice(range), end });
        }
    }
}
