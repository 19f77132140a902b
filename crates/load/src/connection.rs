//! One connection: its socket, its requests in flight, and the bytes of an incomplete reply or request.
//!
//! All connections read into one shared buffer, and requests are written straight from the template: a connection
//! copies bytes only when a reply or a request was cut in two, which is rare.

use std::io;

use mio::{Registry, Token};

use crate::clock;
use crate::lost::ConnectionEnded;
use crate::replies::Replies;
use crate::reply::ReplyVerdict;
use crate::socket::ClientSocket;
use crate::target::TargetAddress;

/// One connection and its requests in flight.
#[derive(Debug)]
pub struct LoadConnection {
    state: State,
    /// The beginning of an incomplete reply.
    partial: Vec<u8>,
    /// Bytes that did not fit into the socket: the end of a request, and control frames of the protocol.
    unsent: Vec<u8>,
    replies: Replies,
    /// True while the connection is queued as one with room for a request.
    pub is_queued: bool,
}

#[derive(Debug, Default)]
enum State {
    /// Closed; not reopened before `until`.
    Shut {
        until: u64,
    },
    /// Connecting.
    Opening {
        since: u64,
        stream: ClientSocket,
    },
    Open {
        stream: ClientSocket,
    },
    #[default]
    New,
}

impl LoadConnection {
    /// A connection that is not open yet, and reads its replies like `replies`.
    pub fn new(replies: &Replies) -> LoadConnection {
        LoadConnection {
            state: State::New,
            partial: Vec::new(),
            unsent: Vec::new(),
            replies: replies.clone(),
            is_queued: false,
        }
    }

    /// True if the connection may be opened now.
    pub fn may_open(&self, now: u64) -> bool {
        match self.state {
            State::New => true,
            State::Shut { until } => until <= now,
            _ => false,
        }
    }

    /// Starts to connect.
    pub fn open(
        &mut self,
        address: &TargetAddress,
        registry: &Registry,
        token: Token,
        now: u64,
    ) -> Result<(), ConnectionEnded> {
        let stream = ClientSocket::open(address, registry, token)
            .map_err(|error| ConnectionEnded::Unopened(error.to_string()))?;
        self.state = State::Opening { since: now, stream };
        Ok(())
    }

    /// True if the connection is established. When it has just been, `opening` is queued on it.
    #[inline]
    pub fn is_open(&mut self, opening: &[u8]) -> Result<bool, ConnectionEnded> {
        if let State::Opening { stream, .. } = &self.state {
            if !stream.is_connected().map_err(|error| ConnectionEnded::Unopened(error.to_string()))? {
                return Ok(false);
            }
            self.state = match std::mem::take(&mut self.state) {
                State::Opening { stream, .. } => State::Open { stream },
                other => other,
            };
            self.unsent.extend_from_slice(opening);
            self.replies.open(clock::now());
        }
        Ok(matches!(self.state, State::Open { .. }))
    }

    /// The timeout of a connection or of its oldest request, if that began before `limit`.
    pub fn overdue(&self, limit: u64) -> Option<ConnectionEnded> {
        match &self.state {
            State::Opening { since, .. } if *since < limit => {
                Some(ConnectionEnded::Unopened("it took too long".to_owned()))
            }
            State::Open { .. } if self.replies.oldest().is_some_and(|start| start < limit) => {
                Some(ConnectionEnded::Late)
            }
            _ => None,
        }
    }

    /// Closes the connection, and returns the number of requests that are lost with it.
    pub fn shut(&mut self, until: u64) -> u64 {
        let lost = self.replies.in_flight() as u64;
        self.state = State::Shut { until };
        self.partial.clear();
        self.unsent.clear();
        self.replies.clear();
        lost
    }

    /// Number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.replies.in_flight()
    }

    /// How many more requests may be sent.
    #[inline]
    pub fn room(&self, pipeline: usize) -> usize {
        match self.state {
            State::Open { .. } if self.unsent.is_empty() => self.replies.room(pipeline),
            _ => 0,
        }
    }

    /// Stream number of the next request; 0 for protocols without streams.
    #[inline]
    pub fn next_stream(&self) -> u32 {
        self.replies.next_stream()
    }

    /// Sends requests with these start times.
    #[inline]
    pub fn send(&mut self, bytes: &[u8], starts: impl Iterator<Item = u64>) -> Result<(), ConnectionEnded> {
        let State::Open { stream } = &mut self.state else { return Err(ConnectionEnded::Closed) };
        self.replies.begin(starts);
        let written = write(stream, bytes)?;
        self.unsent.extend_from_slice(bytes.get(written..).unwrap_or_default());
        Ok(())
    }

    /// Writes the bytes that did not fit into the socket before.
    pub fn flush(&mut self) -> Result<(), ConnectionEnded> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        let State::Open { stream } = &mut self.state else { return Ok(()) };
        let written = write(stream, &self.unsent)?;
        self.unsent.drain(..written);
        Ok(())
    }

    /// Reads all available bytes. `on_reply` receives the latency, the verdict, and bytes to show in case of an error.
    pub fn receive(
        &mut self,
        buffer: &mut [u8],
        is_closing: bool,
        mut on_reply: impl FnMut(u64, ReplyVerdict, &[u8]),
    ) -> Result<(), ConnectionEnded> {
        loop {
            let State::Open { stream } = &mut self.state else { return Ok(()) };
            let read = match stream.read(buffer) {
                Ok(0) => return Err(ConnectionEnded::Closed),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Err(ConnectionEnded::Closed),
            };
            let now = clock::now();
            self.take_in(buffer.get(..read).unwrap_or_default(), |start, verdict, bytes| {
                on_reply(now.saturating_sub(start), verdict, bytes);
            })?;
            // A short read has emptied the socket, and new data raises a new event; but the end of the connection may
            // have been reported along with this data.
            if read < buffer.len() && !is_closing {
                return Ok(());
            }
        }
    }

    #[inline]
    fn take_in(&mut self, fresh: &[u8], on_reply: impl FnMut(u64, ReplyVerdict, &[u8])) -> Result<(), ConnectionEnded> {
        if self.partial.is_empty() {
            let used = self.replies.take(fresh, &mut self.unsent, on_reply)?;
            self.partial.extend_from_slice(fresh.get(used..).unwrap_or_default());
        } else {
            self.partial.extend_from_slice(fresh);
            let used = self.replies.take(&self.partial, &mut self.unsent, on_reply)?;
            self.partial.drain(..used);
        }
        self.flush()
    }
}

#[inline]
fn write(stream: &mut ClientSocket, bytes: &[u8]) -> Result<usize, ConnectionEnded> {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match stream.write(rest) {
            Ok(0) => return Err(ConnectionEnded::Closed),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(ConnectionEnded::Closed),
        }
    }
    Ok(written)
}
