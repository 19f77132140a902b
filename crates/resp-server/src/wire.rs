//! Reads and writes of one connection, each wait with a deadline.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout};
use tokio_util::sync::WaitForCancellationFuture;

use crate::metrics::RespFault;
use tollgate_net::IDLE_GRACE;
use tollgate_net::{Deadline, ListenerContext, Stream};

/// Time and byte limits of the lingering close: see [`TimedStream::linger`].
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 64 << 10;

/// A stream whose waits have deadlines.
pub(super) struct TimedStream<'a> {
    stream: Stream,
    pub(super) context: &'a ListenerContext,
    /// One timer for all waits, created by the first that needs one.
    deadline: Option<Deadline>,
    /// Wakes the connection when the drain begins. Polled once to register the waker, then `has_begun` is checked.
    drain_begun: Pin<Box<WaitForCancellationFuture<'a>>>,
    is_drain_registered: bool,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionEnd {
    /// The client closed or broke the connection.
    Disconnected,
    /// No bytes arrived in time.
    TimedOut,
    /// The last reply is in the output: flush and close.
    Close,
    /// Closed without a reply; counted under this fault.
    Fault(RespFault),
}

impl From<io::Error> for SessionEnd {
    fn from(_: io::Error) -> SessionEnd {
        SessionEnd::Disconnected // the client broke the connection: not an error of the server
    }
}

/// What a read waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadWait {
    /// The next command, for this time or without limit. A drain shortens the wait.
    NextCommand(Option<Duration>),
    /// The rest of a command, until this time.
    RestOfCommand(Instant),
}

impl<'a> TimedStream<'a> {
    pub(super) fn new(stream: Stream, context: &'a ListenerContext) -> TimedStream<'a> {
        TimedStream {
            stream,
            context,
            deadline: None,
            drain_begun: Box::pin(context.drain.begun()),
            is_drain_registered: false,
        }
    }

    /// Reads bytes into the spare capacity of `input`.
    pub(super) async fn read(&mut self, input: &mut Vec<u8>, wait: ReadWait) -> Result<(), SessionEnd> {
        let TimedStream { stream, context, deadline, drain_begun, is_drain_registered } = self;
        let mut limit = match wait {
            ReadWait::NextCommand(None) => None,
            ReadWait::NextCommand(Some(max_wait)) => Some(Instant::now() + max_wait),
            ReadWait::RestOfCommand(until) => Some(until),
        };
        let mut is_set = false;
        let mut read = pin!(stream.read_buf(input));
        let read = poll_fn(|cx| {
            if let Poll::Ready(read) = read.as_mut().poll(cx) {
                return Poll::Ready(Ok(read));
            }
            if !*is_drain_registered {
                *is_drain_registered = true;
                let _ = drain_begun.as_mut().poll(cx); // only registers the waker
            }
            if matches!(wait, ReadWait::NextCommand(_)) && context.drain.has_begun() {
                let last = Instant::now() + IDLE_GRACE;
                if limit.is_none_or(|limit| last < limit) {
                    (limit, is_set) = (Some(last), false);
                }
            }
            let Some(at) = limit else { return Poll::Pending };
            let deadline = deadline.get_or_insert_with(|| Deadline::new(at));
            if !is_set {
                deadline.set(at);
                is_set = true;
            }
            deadline.poll(cx).map(|()| Err(SessionEnd::TimedOut))
        });
        match read.await?? {
            0 => Err(SessionEnd::Disconnected),
            _ => Ok(()),
        }
    }

    /// Writes the output.
    pub(super) async fn flush(&mut self, output: &mut Vec<u8>) -> Result<(), SessionEnd> {
        if output.is_empty() {
            return Ok(());
        }
        let TimedStream { stream, deadline, context: ListenerContext { limits, budget, .. }, .. } = self;
        let mut written = 0;
        let mut reservation = None;
        poll_fn(|cx| {
            while let Some(rest) = output.get(written..).filter(|rest| !rest.is_empty()) {
                match pin!(&mut *stream).poll_write(cx, rest) {
                    Poll::Ready(Ok(0)) | Poll::Ready(Err(_)) => return Poll::Ready(Err(SessionEnd::Disconnected)),
                    Poll::Ready(Ok(some)) => written += some,
                    Poll::Pending => {
                        let at = Instant::now() + limits.write_timeout;
                        let deadline = deadline.get_or_insert_with(|| Deadline::new(at));
                        if reservation.is_none() {
                            // Unread replies take from the byte budget.
                            reservation = budget.reserve(rest.len() as u64);
                            if reservation.is_none() {
                                return Poll::Ready(Err(SessionEnd::Fault(RespFault::NoMemory)));
                            }
                            deadline.set(at);
                        }
                        return deadline.poll(cx).map(|()| Err(SessionEnd::Fault(RespFault::TooSlow)));
                    }
                }
            }
            Poll::Ready(Ok(()))
        })
        .await?;
        output.clear();
        if matches!(stream, Stream::Tls(_)) {
            timeout(limits.write_timeout, stream.flush())
                .await
                .map_err(|_| SessionEnd::Fault(RespFault::TooSlow))??;
        }
        Ok(())
    }

    /// Lingering close: shuts down the write side and reads the remaining input for a moment, because closing with
    /// unread bytes would reset the connection and lose the last reply.
    pub(super) async fn linger(mut self) {
        let closing = async {
            self.stream.shutdown().await?;
            let mut rest = [0; 4096];
            let mut read = 0;
            while read < LINGER_BYTES {
                match self.stream.read(&mut rest).await? {
                    0 => break,
                    some => read += some,
                }
            }
            io::Result::Ok(())
        };
        let _ = timeout(LINGER, closing).await; // best effort
    }
}
