//! The requests in flight on a connection, and how a reply is matched to its request.

use std::collections::VecDeque;

use crate::grpc::Streams;
use crate::lost::ConnectionEnded;
use crate::reply::{FindReply, REPLY_MAX, ReplyVerdict};

/// The requests in flight on a connection.
#[derive(Clone, Debug)]
pub enum Replies {
    /// Replies arrive in the order of their requests.
    InOrder(InOrderReplies),
    /// Every request has its own stream, and replies arrive in any order.
    ByStream(Streams),
}

impl Replies {
    /// The connection is established, and its opening is queued.
    pub fn open(&mut self, now: u64) {
        match self {
            Replies::InOrder(_) => {}
            Replies::ByStream(streams) => streams.open(now),
        }
    }

    /// How many more requests may be sent, if `pipeline` may be in flight.
    #[inline]
    pub fn room(&self, pipeline: usize) -> usize {
        match self {
            Replies::InOrder(queue) => pipeline.saturating_sub(queue.starts.len()),
            Replies::ByStream(streams) => streams.room(pipeline),
        }
    }

    /// Stream number of the next request; 0 for protocols without streams.
    #[inline]
    pub fn next_stream(&self) -> u32 {
        match self {
            Replies::InOrder(_) => 0,
            Replies::ByStream(streams) => streams.next(),
        }
    }

    /// Adds requests with these start times.
    #[inline]
    pub fn begin(&mut self, starts: impl Iterator<Item = u64>) {
        match self {
            Replies::InOrder(queue) => queue.starts.extend(starts),
            Replies::ByStream(streams) => streams.begin(starts),
        }
    }

    /// Reads whole replies, and returns the number of bytes read. `on_reply` receives the start time of the request,
    /// the verdict, and bytes to show in case of an error; control frames that answer the server are appended to
    /// `answer`.
    #[inline]
    pub fn take(
        &mut self,
        bytes: &[u8],
        answer: &mut Vec<u8>,
        on_reply: impl FnMut(u64, ReplyVerdict, &[u8]),
    ) -> Result<usize, ConnectionEnded> {
        match self {
            Replies::InOrder(queue) => queue.take(bytes, on_reply),
            Replies::ByStream(streams) => streams.take(bytes, answer, on_reply),
        }
    }

    /// Start time of the oldest request in flight.
    pub fn oldest(&self) -> Option<u64> {
        match self {
            Replies::InOrder(queue) => queue.starts.front().copied(),
            Replies::ByStream(streams) => streams.oldest(),
        }
    }

    /// Number of requests in flight.
    pub fn in_flight(&self) -> usize {
        match self {
            Replies::InOrder(queue) => queue.starts.len(),
            Replies::ByStream(streams) => streams.in_flight(),
        }
    }

    /// Drops all requests in flight: the connection is closed.
    pub fn clear(&mut self) {
        match self {
            Replies::InOrder(queue) => queue.starts.clear(),
            Replies::ByStream(streams) => streams.clear(),
        }
    }
}

/// Requests that are answered in order.
#[derive(Clone, Debug)]
pub struct InOrderReplies {
    find: FindReply,
    /// Start times, oldest first.
    starts: VecDeque<u64>,
}

impl InOrderReplies {
    /// No request in flight.
    pub fn new(find: FindReply) -> InOrderReplies {
        InOrderReplies { find, starts: VecDeque::new() }
    }

    #[inline]
    fn take(
        &mut self,
        bytes: &[u8],
        mut on_reply: impl FnMut(u64, ReplyVerdict, &[u8]),
    ) -> Result<usize, ConnectionEnded> {
        let mut used = 0;
        while used < bytes.len() {
            let rest = bytes.get(used..).unwrap_or_default();
            let Some(reply) = (self.find)(rest)? else { break };
            let start = self.starts.pop_front().ok_or(ConnectionEnded::Malformed("a reply without a request"))?;
            on_reply(start, reply.verdict, rest.get(..reply.length).unwrap_or_default());
            used += reply.length;
            if reply.is_last {
                return Err(ConnectionEnded::Closed);
            }
        }
        match bytes.len() - used > REPLY_MAX {
            true => Err(ConnectionEnded::Malformed("the reply is too long")),
            false => Ok(used),
        }
    }
}
