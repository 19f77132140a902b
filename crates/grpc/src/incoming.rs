//! The body of a call as tonic reads it: the one message of a unary call, which is all there; or one message after the
//! other, each in its time and with room for what has come in.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;

use super::message::{Line, PREFIX_BYTES, length, no_room};
use tollgate_net::{Deadline, StreamBudget};

/// The body of a call.
pub(super) enum Incoming {
    /// One message, with its prefix.
    One(Option<Bytes>),
    /// Any number of them.
    Many(Box<Many>),
}

/// Messages that come one after the other.
pub(super) struct Many {
    body: RecvStream,
    /// The longest message.
    longest: usize,
    /// How long a message may take, and how long there may be none.
    patience: Duration,
    deadline: Deadline,
    line: Line,
    leave: Pin<Box<WaitForCancellationFutureOwned>>,
    scan: Scan,
    place: StreamBudget,
    over: bool,
}

impl Many {
    /// The messages in a body, each of at most so many bytes, until the connection is about to be closed.
    pub(super) fn new(
        body: RecvStream,
        longest: usize,
        patience: Duration,
        line: Line,
        leave: CancellationToken,
    ) -> Many {
        let deadline = Deadline::new(Instant::now() + patience);
        let leave = Box::pin(leave.cancelled_owned());
        let (scan, place) = (Scan::default(), StreamBudget::default());
        Many { body, longest, patience, deadline, line, leave, scan, place, over: false }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let piece = self.poll_next(cx);
        if let Poll::Ready(None | Some(Err(_))) = piece {
            self.over = true;
        }
        piece
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
        if let Poll::Ready(piece) = self.body.poll_data(cx) {
            return Poll::Ready(piece.map(|piece| self.take(piece.map_err(|_| Status::cancelled("given up"))?)));
        }
        if self.deadline.poll(cx).is_ready() {
            return Poll::Ready(Some(Err(Status::deadline_exceeded("no message arrived in time"))));
        }
        if self.leave.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(Status::unavailable("this server is going away: call again"))));
        }
        Poll::Pending
    }

    fn take(&mut self, piece: Bytes) -> Result<Bytes, Status> {
        let _ = self.body.flow_control().release_capacity(piece.len()); // fails if the call is over
        if !piece.is_empty() {
            self.line.io_activity.got_on();
        }
        if self.scan.scope(&piece, self.longest)? {
            self.deadline.set(Instant::now() + self.patience);
        }
        self.place.grow(&self.line.share, self.scan.begun() as u64).ok_or_else(no_room)?;
        if self.scan.begun() == 0 {
            self.place = StreamBudget::default(); // the next one is another message
        }
        Ok(piece)
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let piece = match &mut *self {
            Incoming::One(message) => Poll::Ready(message.take().map(Ok)),
            Incoming::Many(many) => many.poll_piece(cx),
        };
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Incoming::One(message) => message.is_none(),
            Incoming::Many(many) => many.over || many.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// Follows where messages begin and end.
#[derive(Default)]
struct Scan {
    prefix: [u8; PREFIX_BYTES],
    /// Bytes of the prefix that were seen.
    seen: usize,
    /// The length of the message.
    length: usize,
    /// Bytes of it that are still to come.
    left: usize,
}

impl Scan {
    /// Passes over a piece: true if a message begins or ends in it. An error if one is too long.
    fn scope(&mut self, mut piece: &[u8], most: usize) -> Result<bool, Status> {
        let mut turned = false;
        loop {
            let passed = self.left.min(piece.len());
            self.left -= passed;
            turned |= passed > 0 && self.left == 0;
            piece = piece.get(passed..).unwrap_or_default();
            let Some((byte, rest)) = piece.split_first() else { return Ok(turned) };
            if let Some(place) = self.prefix.get_mut(self.seen) {
                *place = *byte;
            }
            turned |= self.seen == 0;
            piece = rest;
            self.seen += 1;
            if self.seen == PREFIX_BYTES {
                self.seen = 0;
                self.length = length(self.prefix, most)?;
                self.left = self.length;
            }
        }
    }

    /// How much of a message is there that is not all there.
    fn begun(&self) -> usize {
        if self.left == 0 { self.seen } else { PREFIX_BYTES + self.length - self.left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_messages_however_they_are_cut() {
        let bytes = [&[0, 0, 0, 0, 3, 1, 2, 3][..], &[0, 0, 0, 0, 0], &[0, 0, 0, 1, 0], &[7; 256]].concat();
        for size in 1..=bytes.len() {
            let mut scan = Scan::default();
            let turned = bytes.chunks(size).filter(|piece| scan.scope(piece, 256).unwrap()).count();
            assert_eq!((scan.seen, scan.left, scan.begun()), (0, 0, 0), "in pieces of {size}");
            let most = if size == 1 { 5 } else { bytes.len().div_ceil(size).min(5) };
            assert!((1..=most).contains(&turned), "{turned} turns in pieces of {size}");
        }
        let too_long = Scan::default().scope(&bytes, 255).unwrap_err();
        assert_eq!(too_long.code(), tonic::Code::ResourceExhausted);
        let compressed = Scan::default().scope(&[1, 0, 0, 0, 0], 255).unwrap_err();
        assert_eq!(compressed.code(), tonic::Code::Unimplemented);
    }

    #[test]
    fn knows_what_is_there_of_a_message() {
        let mut scan = Scan::default();
        for (piece, turns, begun) in [
            (&[0, 0][..], true, 2),
            (&[0, 0], false, 4),
            (&[9], false, 5),
            (&[1; 8], false, 13),
            (&[1], true, 0),
            (&[0, 0, 0, 0, 0, 0, 0, 0, 0], true, 4),
        ] {
            assert_eq!(scan.scope(piece, 256).unwrap(), turns);
            assert_eq!(scan.begun(), begun);
        }
    }
}
