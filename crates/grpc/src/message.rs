//! The one message of a unary call: a flag, a length, and so many bytes.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use tokio::time::timeout;
use tonic::Status;

use super::io_activity::IoActivity;
use tollgate_net::{ConnectionBudget, FREE_BYTES, StreamBudget};

/// Flag and length before every message.
pub(super) const PREFIX_BYTES: usize = 5;
/// What a call takes that waits for its caller, beside the bytes that have come in: a task, and what is known of the call.
const WAITING_BYTES: u64 = 2 << 10;

/// What a call has of the connection it came on. Clones are the same.
#[derive(Clone)]
pub(super) struct Line {
    /// Room for what is on its way.
    pub(super) share: ConnectionBudget,
    /// HealthUpdates of every byte of a message.
    pub(super) io_activity: IoActivity,
}

/// A message that is being read.
pub(super) struct Message {
    body: RecvStream,
    /// What came in one piece, as nearly every message does.
    first: Bytes,
    /// All of it, as soon as there is a second piece.
    all: BytesMut,
    most: usize,
    place: StreamBudget,
}

impl Message {
    /// A message of at most so many bytes.
    pub(super) fn new(body: RecvStream, most: usize) -> Message {
        Message { body, first: Bytes::new(), all: BytesMut::new(), most, place: StreamBudget::default() }
    }

    /// The message with its prefix, once the call has ended. What is large needs room, and so does what is not all there.
    pub(super) fn poll(&mut self, line: &Line, cx: &mut Context<'_>) -> Poll<Result<Bytes, Status>> {
        loop {
            match self.body.poll_data(cx) {
                Poll::Ready(Some(Ok(piece))) => {
                    let _ = self.body.flow_control().release_capacity(piece.len()); // fails if the call is over
                    if let Err(status) = self.take(piece, line) {
                        return Poll::Ready(Err(status));
                    }
                    if self.body.is_end_stream() {
                        break;
                    }
                }
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(Status::cancelled("the call was given up"))),
                Poll::Ready(None) => break,
                Poll::Pending => match self.wait(line) {
                    Ok(()) => return Poll::Pending,
                    Err(status) => return Poll::Ready(Err(status)),
                },
            }
        }
        let read = if self.all.is_empty() { std::mem::take(&mut self.first) } else { self.all.split().freeze() };
        Poll::Ready(whole(read))
    }

    /// The same for whoever waits, as long as a message may take.
    pub(super) async fn read(&mut self, line: &Line, patience: Duration) -> Result<Bytes, Status> {
        let read = timeout(patience, poll_fn(|cx| self.poll(line, cx))).await;
        read.unwrap_or_else(|_| Err(Status::deadline_exceeded("the message did not arrive in time")))
    }

    /// More is to come: what is there is kept by itself, because a piece holds on to everything that was read with it.
    fn wait(&mut self, line: &Line) -> Result<(), Status> {
        self.all.extend_from_slice(&std::mem::take(&mut self.first));
        self.place.grow(&line.share, WAITING_BYTES + self.all.len() as u64).ok_or_else(no_room)
    }

    /// Adds a piece; stops as soon as it is clear that this is no message.
    fn take(&mut self, piece: Bytes, line: &Line) -> Result<(), Status> {
        if !piece.is_empty() {
            line.io_activity.got_on();
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
            let length = length(*prefix, self.most)?;
            if read.len() > PREFIX_BYTES + length {
                return Err(more_than_one());
            }
        }
        match read.len() as u64 {
            0..=FREE_BYTES => Ok(()),
            bytes => self.place.grow(&line.share, bytes).ok_or_else(no_room),
        }
    }
}

/// What is told to those who send more than was asked for.
pub(super) fn more_than_one() -> Status {
    Status::invalid_argument("one message was expected, and more was sent")
}

/// What is told when too many bytes are on their way.
pub(super) fn no_room() -> Status {
    Status::unavailable("too many messages are on their way; try again")
}

/// The length that a prefix announces.
pub(super) fn length([flag, length @ ..]: [u8; PREFIX_BYTES], most: usize) -> Result<usize, Status> {
    match (flag, u32::from_be_bytes(length) as usize) {
        (0, length) if length <= most => Ok(length),
        (0, _) => Err(Status::resource_exhausted(format!("the message is longer than {most} bytes"))),
        (1, _) => Err(Status::unimplemented("messages are not compressed here: send them as they are")),
        _ => Err(Status::internal("what was sent is no gRPC message")),
    }
}

fn whole(read: Bytes) -> Result<Bytes, Status> {
    match read.first_chunk::<PREFIX_BYTES>() {
        Some(&[_, length @ ..]) if u32::from_be_bytes(length) as usize == read.len() - PREFIX_BYTES => Ok(read),
        Some(_) => Err(Status::invalid_argument("the message ended early")),
        None => Err(Status::invalid_argument("there is no message")),
    }
}

const _: () = assert!(size_of::<usize>() >= size_of::<u32>());
