//! The one message of a unary call: a flag, a length, and so many bytes.

use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use h2::RecvStream;
use tonic::Status;

use crate::net::{Room, Transit};

/// Flag and length before every message.
pub(super) const PREFIX_BYTES: usize = 5;

/// A message that is being read.
pub(super) struct Message {
    body: RecvStream,
    /// What came in one piece, as nearly every message does.
    first: Bytes,
    /// All of it, as soon as there is a second piece.
    all: BytesMut,
    most: usize,
    room: Option<Room>,
    transit: Transit,
}

impl Message {
    /// A message of at most so many bytes.
    pub(super) fn new(body: RecvStream, most: usize, transit: &Transit) -> Message {
        let transit = transit.clone();
        Message { body, first: Bytes::new(), all: BytesMut::new(), most, room: None, transit }
    }

    /// The message without its prefix, once the call has ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Status>> {
        loop {
            match ready!(self.body.poll_data(cx)) {
                Some(Ok(piece)) => {
                    let _ = self.body.flow_control().release_capacity(piece.len()); // fails if the call is over
                    if let Err(status) = self.take(piece) {
                        return Poll::Ready(Err(status));
                    }
                    if self.body.is_end_stream() {
                        break;
                    }
                }
                Some(Err(_)) => return Poll::Ready(Err(Status::cancelled("the call was given up"))),
                None => break,
            }
        }
        let read = if self.all.is_empty() { std::mem::take(&mut self.first) } else { self.all.split().freeze() };
        Poll::Ready(payload(read))
    }

    /// Adds a piece; stops as soon as it is clear that this is no message.
    fn take(&mut self, piece: Bytes) -> Result<(), Status> {
        if self.all.is_empty() && self.first.is_empty() {
            self.first = piece;
        } else {
            if self.all.is_empty() {
                self.all.extend_from_slice(&self.first);
            }
            self.all.extend_from_slice(&piece);
        }
        let read = if self.all.is_empty() { &self.first[..] } else { &self.all[..] };
        if let Some(prefix) = read.first_chunk() {
            let length = length(*prefix, self.most)?;
            if read.len() > PREFIX_BYTES + length {
                return Err(more_than_one());
            }
            if self.room.is_none() {
                self.room = Some(self.transit.room(length as u64).ok_or_else(no_room)?);
            }
        }
        Ok(())
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

fn payload(mut read: Bytes) -> Result<Bytes, Status> {
    match read.first_chunk::<PREFIX_BYTES>() {
        Some(&[_, length @ ..]) if u32::from_be_bytes(length) as usize == read.len() - PREFIX_BYTES => {
            read.advance(PREFIX_BYTES);
            Ok(read)
        }
        Some(_) => Err(Status::invalid_argument("the message ended early")),
        None => Err(Status::invalid_argument("there is no message")),
    }
}

const _: () = assert!(size_of::<usize>() >= size_of::<u32>());
