//! The body of a call as tonic reads it: with time limits, and with room for what is large.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;

use super::message::{PREFIX_BYTES, length, more_than_one, no_room};
use crate::net::{Deadline, Room, Transit};

/// What a body may take.
#[derive(Clone)]
pub(super) struct Allowance {
    /// The longest message.
    pub(super) message: usize,
    /// Whether there may be more than one.
    pub(super) many: bool,
    /// The longest silence.
    pub(super) silence: Duration,
    /// Memory for what is on its way.
    pub(super) transit: Transit,
}

/// The body of a call.
pub(super) struct Incoming {
    body: RecvStream,
    allowance: Allowance,
    deadline: Deadline,
    leave: Pin<Box<WaitForCancellationFutureOwned>>,
    scan: Scan,
    room: Option<Room>,
    over: bool,
}

impl Incoming {
    /// The body, until the connection is about to be closed.
    pub(super) fn new(body: RecvStream, allowance: Allowance, leave: CancellationToken) -> Incoming {
        let deadline = Deadline::new(Instant::now() + allowance.silence);
        let leave = Box::pin(leave.cancelled_owned());
        Incoming { body, allowance, deadline, leave, scan: Scan::default(), room: None, over: false }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
        if let Poll::Ready(piece) = self.body.poll_data(cx) {
            return Poll::Ready(piece.map(|piece| self.take(piece.map_err(|_| Status::cancelled("given up"))?)));
        }
        if self.deadline.poll(cx).is_ready() {
            return Poll::Ready(Some(Err(Status::deadline_exceeded("nothing was sent for too long"))));
        }
        if self.leave.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(Status::unavailable("this server is going away: call again"))));
        }
        Poll::Pending
    }

    fn take(&mut self, piece: Bytes) -> Result<Bytes, Status> {
        let _ = self.body.flow_control().release_capacity(piece.len()); // fails if the call is over
        self.deadline.set(Instant::now() + self.allowance.silence);
        let Allowance { message, many, transit, .. } = &self.allowance;
        let largest = self.scan.largest(&piece, *message)?;
        if !many && self.scan.messages > 1 {
            return Err(more_than_one());
        }
        if let Some(length) = largest {
            self.room = None;
            self.room = Some(transit.room(length as u64).ok_or_else(no_room)?);
        }
        Ok(piece)
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let piece = self.poll_piece(cx);
        if let Poll::Ready(None | Some(Err(_))) = piece {
            self.over = true;
        }
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// Follows where messages begin, so that the length of each is known before it is there.
#[derive(Default)]
struct Scan {
    prefix: [u8; PREFIX_BYTES],
    /// Bytes of the prefix that were seen.
    seen: usize,
    /// Bytes of the message that are still to come.
    left: usize,
    /// Messages that have begun.
    messages: u64,
}

impl Scan {
    /// The longest message that begins in this piece; an error if one is too long.
    fn largest(&mut self, mut piece: &[u8], most: usize) -> Result<Option<usize>, Status> {
        let mut largest = None;
        loop {
            let passed = self.left.min(piece.len());
            self.left -= passed;
            piece = piece.get(passed..).unwrap_or_default();
            let Some((byte, rest)) = piece.split_first() else { return Ok(largest) };
            if let Some(place) = self.prefix.get_mut(self.seen) {
                *place = *byte;
            }
            piece = rest;
            self.seen += 1;
            if self.seen == PREFIX_BYTES {
                self.seen = 0;
                self.messages += 1;
                self.left = length(self.prefix, most)?;
                largest = largest.max(Some(self.left));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_messages_however_they_are_cut() {
        let bytes = [&[0, 0, 0, 0, 3, 1, 2, 3][..], &[0, 0, 0, 0, 0], &[0, 0, 0, 1, 0], &[7; 256]].concat();
        for size in 1..bytes.len() {
            let mut scan = Scan::default();
            let found: Vec<usize> = bytes.chunks(size).filter_map(|piece| scan.largest(piece, 256).unwrap()).collect();
            assert_eq!(found.iter().max(), Some(&256), "in pieces of {size}");
            assert_eq!((scan.seen, scan.left, scan.messages), (0, 0, 3));
        }
        let too_long = Scan::default().largest(&bytes, 255).unwrap_err();
        assert_eq!(too_long.code(), tonic::Code::ResourceExhausted);
        let compressed = Scan::default().largest(&[1, 0, 0, 0, 0], 255).unwrap_err();
        assert_eq!(compressed.code(), tonic::Code::Unimplemented);
    }
}
