//! Request body as tonic reads it: the complete message of a unary call, or a stream of messages. Each message of a
//! stream has a time limit, and its buffered part is charged to the connection's byte budget.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;

use super::message::{CallContext, PREFIX_BYTES, budget_exhausted, length};
use tollgate_net::{Deadline, StreamBudget};

/// The request body of a call.
pub(super) enum Incoming {
    /// One message, with its prefix.
    Unary(Option<Bytes>),
    /// Any number of messages.
    Streaming(Box<MessageStream>),
}

/// The messages of a client-streaming call.
pub(super) struct MessageStream {
    body: RecvStream,
    /// Size limit of a message.
    max_message_bytes: usize,
    /// Time limit for one message, and for the gap before it.
    max_wait: Duration,
    deadline: Deadline,
    context: CallContext,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    scanner: MessageScanner,
    reservation: StreamBudget,
    is_finished: bool,
}

impl MessageStream {
    /// Reads the messages of `body` until the connection is about to close.
    pub(super) fn new(
        body: RecvStream,
        max_message_bytes: usize,
        max_wait: Duration,
        context: CallContext,
        closing: CancellationToken,
    ) -> MessageStream {
        let deadline = Deadline::new(Instant::now() + max_wait);
        let closing = Box::pin(closing.cancelled_owned());
        let (scanner, reservation) = (MessageScanner::default(), StreamBudget::default());
        MessageStream {
            body,
            max_message_bytes,
            max_wait,
            deadline,
            context,
            closing,
            scanner,
            reservation,
            is_finished: false,
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>> {
        if self.is_finished {
            return Poll::Ready(None);
        }
        let piece = self.poll_next(cx);
        if let Poll::Ready(None | Some(Err(_))) = piece {
            self.is_finished = true;
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
        if self.closing.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(Status::unavailable("this server is going away: call again"))));
        }
        Poll::Pending
    }

    fn take(&mut self, piece: Bytes) -> Result<Bytes, Status> {
        let _ = self.body.flow_control().release_capacity(piece.len()); // fails if the call is over
        if !piece.is_empty() {
            self.context.io_activity.record_progress();
        }
        if self.scanner.advance(&piece, self.max_message_bytes)? {
            self.deadline.set(Instant::now() + self.max_wait);
        }
        self.reservation
            .grow(&self.context.budget, self.scanner.partial_bytes() as u64)
            .ok_or_else(budget_exhausted)?;
        if self.scanner.partial_bytes() == 0 {
            self.reservation = StreamBudget::default(); // the message is complete
        }
        Ok(piece)
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let piece = match &mut *self {
            Incoming::Unary(message) => Poll::Ready(message.take().map(Ok)),
            Incoming::Streaming(messages) => messages.poll_piece(cx),
        };
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Incoming::Unary(message) => message.is_none(),
            Incoming::Streaming(messages) => messages.is_finished || messages.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// Tracks message boundaries in a byte stream.
#[derive(Default)]
struct MessageScanner {
    prefix: [u8; PREFIX_BYTES],
    /// Bytes of the prefix read so far.
    seen: usize,
    /// Length of the current message.
    length: usize,
    /// Bytes of the current message still to come.
    left: usize,
}

impl MessageScanner {
    /// Scans a piece: true if a message begins or ends in it. Fails if a message is too long.
    fn advance(&mut self, mut piece: &[u8], max_bytes: usize) -> Result<bool, Status> {
        let mut crossed = false;
        loop {
            let passed = self.left.min(piece.len());
            self.left -= passed;
            crossed |= passed > 0 && self.left == 0;
            piece = piece.get(passed..).unwrap_or_default();
            let Some((byte, rest)) = piece.split_first() else { return Ok(crossed) };
            if let Some(slot) = self.prefix.get_mut(self.seen) {
                *slot = *byte;
            }
            crossed |= self.seen == 0;
            piece = rest;
            self.seen += 1;
            if self.seen == PREFIX_BYTES {
                self.seen = 0;
                self.length = length(self.prefix, max_bytes)?;
                self.left = self.length;
            }
        }
    }

    /// Bytes of the incomplete message read so far.
    fn partial_bytes(&self) -> usize {
        if self.left == 0 { self.seen } else { PREFIX_BYTES + self.length - self.left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_message_boundaries_for_every_chunk_size() {
        let bytes = [&[0, 0, 0, 0, 3, 1, 2, 3][..], &[0, 0, 0, 0, 0], &[0, 0, 0, 1, 0], &[7; 256]].concat();
        for size in 1..=bytes.len() {
            let mut scanner = MessageScanner::default();
            let crossed = bytes.chunks(size).filter(|piece| scanner.advance(piece, 256).unwrap()).count();
            assert_eq!((scanner.seen, scanner.left, scanner.partial_bytes()), (0, 0, 0), "in pieces of {size}");
            let max_crossed = if size == 1 { 5 } else { bytes.len().div_ceil(size).min(5) };
            assert!((1..=max_crossed).contains(&crossed), "a boundary in {crossed} pieces of {size} bytes");
        }
        let too_long = MessageScanner::default().advance(&bytes, 255).unwrap_err();
        assert_eq!(too_long.code(), tonic::Code::ResourceExhausted);
        let compressed = MessageScanner::default().advance(&[1, 0, 0, 0, 0], 255).unwrap_err();
        assert_eq!(compressed.code(), tonic::Code::Unimplemented);
    }

    #[test]
    fn counts_the_bytes_of_an_incomplete_message() {
        let mut scanner = MessageScanner::default();
        for (piece, crosses, partial_bytes) in [
            (&[0, 0][..], true, 2),
            (&[0, 0], false, 4),
            (&[9], false, 5),
            (&[1; 8], false, 13),
            (&[1], true, 0),
            (&[0, 0, 0, 0, 0, 0, 0, 0, 0], true, 4),
        ] {
            assert_eq!(scanner.advance(piece, 256).unwrap(), crosses);
            assert_eq!(scanner.partial_bytes(), partial_bytes);
        }
    }
}
