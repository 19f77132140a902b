//! What is under way on a connection, and how a reply finds its request.

use std::collections::VecDeque;

use crate::grpc::Streams;
use crate::lost::ConnectionLost;
use crate::reply::{FindReply, REPLY_MAX, ReplyVerdict};

/// The requests under way on a connection.
#[derive(Clone, Debug)]
pub enum Replies {
    /// Replies come in the order of their requests.
    InOrder(InOrderReplies),
    /// Every request has a stream of its own, and replies come in any order.
    ByStream(Streams),
}

impl Replies {
    /// The connection stands, at this moment, and has said its opening.
    pub fn open(&mut self, now: u64) {
        match self {
            Replies::InOrder(_) => {}
            Replies::ByStream(streams) => streams.open(now),
        }
    }

    /// How many more requests may go out, if so many may be under way.
    #[inline]
    pub fn room(&self, pipeline: usize) -> usize {
        match self {
            Replies::InOrder(queue) => pipeline.saturating_sub(queue.starts.len()),
            Replies::ByStream(streams) => streams.room(pipeline),
        }
    }

    /// The stream of the next request, where there are streams.
    #[inline]
    pub fn next_stream(&self) -> u32 {
        match self {
            Replies::InOrder(_) => 0,
            Replies::ByStream(streams) => streams.next(),
        }
    }

    /// Requests go out, begun at these moments.
    #[inline]
    pub fn begin(&mut self, starts: impl Iterator<Item = u64>) {
        match self {
            Replies::InOrder(queue) => queue.starts.extend(starts),
            Replies::ByStream(streams) => streams.begin(starts),
        }
    }

    /// Takes whole replies off the front, and tells how many bytes those were. `on_reply` gets when the request began,
    /// what the reply says, and something to show of it; what the protocol itself has to answer goes to `answer`.
    #[inline]
    pub fn take(
        &mut self,
        bytes: &[u8],
        answer: &mut Vec<u8>,
        on_reply: impl FnMut(u64, ReplyVerdict, &[u8]),
    ) -> Result<usize, ConnectionLost> {
        match self {
            Replies::InOrder(queue) => queue.take(bytes, on_reply),
            Replies::ByStream(streams) => streams.take(bytes, answer, on_reply),
        }
    }

    /// When the oldest request under way began.
    pub fn oldest(&self) -> Option<u64> {
        match self {
            Replies::InOrder(queue) => queue.starts.front().copied(),
            Replies::ByStream(streams) => streams.oldest(),
        }
    }

    /// Requests under way.
    pub fn under_way(&self) -> usize {
        match self {
            Replies::InOrder(queue) => queue.starts.len(),
            Replies::ByStream(streams) => streams.under_way(),
        }
    }

    /// The connection is gone, and everything that was under way with it.
    pub fn clear(&mut self) {
        match self {
            Replies::InOrder(queue) => queue.starts.clear(),
            Replies::ByStream(streams) => streams.clear(),
        }
    }
}

/// Requests that are answered one after the other.
#[derive(Clone, Debug)]
pub struct InOrderReplies {
    find: FindReply,
    /// When they began, oldest first.
    starts: VecDeque<u64>,
}

impl InOrderReplies {
    /// Nothing under way.
    pub fn new(find: FindReply) -> InOrderReplies {
        InOrderReplies { find, starts: VecDeque::new() }
    }

    #[inline]
    fn take(
        &mut self,
        bytes: &[u8],
        mut on_reply: impl FnMut(u64, ReplyVerdict, &[u8]),
    ) -> Result<usize, ConnectionLost> {
        let mut used = 0;
        while used < bytes.len() {
            let rest = bytes.get(used..).unwrap_or_default();
            let Some(reply) = (self.find)(rest)? else { break };
            let start = self.starts.pop_front().ok_or(ConnectionLost::Malformed("a reply that nobody asked for"))?;
            on_reply(start, reply.verdict, rest.get(..reply.length).unwrap_or_default());
            used += reply.length;
            if reply.is_last {
                return Err(ConnectionLost::Closed);
            }
        }
        match bytes.len() - used > REPLY_MAX {
            true => Err(ConnectionLost::Malformed("the reply is too long")),
            false => Ok(used),
        }
    }
}
