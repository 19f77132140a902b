//! The length-prefixed message of a unary call: compression flag, length, bytes.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use tokio::time::timeout;
use tonic::Status;

use super::io_activity::IoActivity;
use tollgate_net::{ConnectionBudget, FREE_BYTES, StreamBudget};

/// Bytes of the flag and length before every message.
pub(super) const PREFIX_BYTES: usize = 5;
/// Memory of a call that waits for its message, apart from the bytes received: its task and state.
const WAITING_BYTES: u64 = 2 << 10;

/// Connection state that each of its calls uses. Clones share it.
#[derive(Clone)]
pub(super) struct CallContext {
    /// Byte budget for incomplete and large messages.
    pub(super) budget: ConnectionBudget,
    /// Progress is recorded for every piece of a message.
    pub(super) io_activity: IoActivity,
}

/// Reader of a unary call's message.
pub(super) struct UnaryMessage {
    body: RecvStream,
    /// The first piece; nearly every message arrives in one.
    first: Bytes,
    /// All bytes, once there is a second piece.
    all: BytesMut,
    max_bytes: usize,
    reservation: StreamBudget,
}

impl UnaryMessage {
    /// Reads a message of at most `max_bytes`.
    pub(super) fn new(body: RecvStream, max_bytes: usize) -> UnaryMessage {
        UnaryMessage {
            body,
            first: Bytes::new(),
            all: BytesMut::new(),
            max_bytes,
            reservation: StreamBudget::default(),
        }
    }

    /// The message with its prefix, once the client has ended the stream. Large and incomplete messages take from the
    /// byte budget.
    pub(super) fn poll(&mut self, context: &CallContext, cx: &mut Context<'_>) -> Poll<Result<Bytes, Status>> {
        loop {
            match self.body.poll_data(cx) {
                Poll::Ready(Some(Ok(piece))) => {
                    let _ = self.body.flow_control().release_capacity(piece.len()); // fails if the call is over
                    if let Err(status) = self.push(piece, context) {
                        return Poll::Ready(Err(status));
                    }
                    if self.body.is_end_stream() {
                        break;
                    }
                }
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(Status::cancelled("the call was given up"))),
                Poll::Ready(None) => break,
                Poll::Pending => match self.hold_partial(context) {
                    Ok(()) => return Poll::Pending,
                    Err(status) => return Poll::Ready(Err(status)),
                },
            }
        }
        let read = if self.all.is_empty() { std::mem::take(&mut self.first) } else { self.all.split().freeze() };
        Poll::Ready(require_complete(read))
    }

    /// Like [`UnaryMessage::poll`], with a time limit.
    pub(super) async fn read(&mut self, context: &CallContext, max_wait: Duration) -> Result<Bytes, Status> {
        let read = timeout(max_wait, poll_fn(|cx| self.poll(context, cx))).await;
        read.unwrap_or_else(|_| Err(Status::deadline_exceeded("the message did not arrive in time")))
    }

    /// The message is incomplete: copies the first piece, because a piece keeps its whole read buffer alive.
    fn hold_partial(&mut self, context: &CallContext) -> Result<(), Status> {
        self.all.extend_from_slice(&std::mem::take(&mut self.first));
        self.reservation.grow(&context.budget, WAITING_BYTES + self.all.len() as u64).ok_or_else(budget_exhausted)
    }

    /// Adds a piece; fails as soon as the message is invalid.
    fn push(&mut self, piece: Bytes, context: &CallContext) -> Result<(), Status> {
        if !piece.is_empty() {
            context.io_activity.record_progress();
        }
        if self.all.is_empty() && self.first.is_empty() {
            self.first = piece;
        } else {
            if self.all.is_empty() {
                self.all.extend_from_slice(&std::mem::take(&mut self.first));
            }
            self.all.extend_from_slice(&piece);
        }
        let read = if self.all.is_empty() { &self.first[..] } else { &self.all[..] };
        if let Some(prefix) = read.first_chunk() {
            let length = length(*prefix, self.max_bytes)?;
            if read.len() > PREFIX_BYTES + length {
                return Err(more_than_one());
            }
        }
        match read.len() as u64 {
            0..=FREE_BYTES => Ok(()),
            bytes => self.reservation.grow(&context.budget, bytes).ok_or_else(budget_exhausted),
        }
    }
}

/// Status of a unary call with more than one message.
pub(super) fn more_than_one() -> Status {
    Status::invalid_argument("one message was expected, and more was sent")
}

/// Status when the byte budget is exhausted.
pub(super) fn budget_exhausted() -> Status {
    Status::unavailable("too many messages are on their way; try again")
}

/// The message length in a prefix.
pub(super) fn length([flag, length @ ..]: [u8; PREFIX_BYTES], max_bytes: usize) -> Result<usize, Status> {
    match (flag, u32::from_be_bytes(length) as usize) {
        (0, length) if length <= max_bytes => Ok(length),
        (0, _) => Err(Status::resource_exhausted(format!("the message is longer than {max_bytes} bytes"))),
        (1, _) => Err(Status::unimplemented("messages are not compressed here: send them as they are")),
        _ => Err(Status::internal("what was sent is no gRPC message")),
    }
}

fn require_complete(read: Bytes) -> Result<Bytes, Status> {
    match read.first_chunk::<PREFIX_BYTES>() {
        Some(&[_, length @ ..]) if u32::from_be_bytes(length) as usize == read.len() - PREFIX_BYTES => Ok(read),
        Some(_) => Err(Status::invalid_argument("the message ended early")),
        None => Err(Status::invalid_argument("there is no message")),
    }
}

const _: () = assert!(size_of::<usize>() >= size_of::<u32>());
