//! The bytes of one connection, each wait with its deadline.

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

/// How long, and how much, is read after a last answer so that closing does not reset it away.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 64 << 10;

/// A connection's bytes.
pub(super) struct Wire<'a> {
    stream: Stream,
    pub(super) context: &'a ListenerContext,
    /// One timer for all waits, made for the first that needs one.
    deadline: Option<Deadline>,
    /// Wakes the connection when the drain begins. Polled once: whoever it wakes then asks whether it has.
    begun: Pin<Box<WaitForCancellationFuture<'a>>>,
    hears_drain: bool,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The other end is gone, or as good as gone.
    Gone,
    /// Nothing came in time.
    Late,
    /// The last answer has been made.
    Close,
    /// A reason that is counted: nothing more is said.
    Cut(RespFault),
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Stop {
        Stop::Gone // whoever breaks a connection wants to hear nothing about it
    }
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The next command, for so long, or for ever: a drain that begins cuts it short.
    Between(Option<Duration>),
    /// The rest of one, until then.
    Within(Instant),
}

impl<'a> Wire<'a> {
    pub(super) fn new(stream: Stream, context: &'a ListenerContext) -> Wire<'a> {
        Wire { stream, context, deadline: None, begun: Box::pin(context.drain.begun()), hears_drain: false }
    }

    /// Reads some bytes into what room there is.
    pub(super) async fn read(&mut self, input: &mut Vec<u8>, wait: Wait) -> Result<(), Stop> {
        let Wire { stream, context, deadline, begun, hears_drain } = self;
        let mut limit = match wait {
            Wait::Between(None) => None,
            Wait::Between(Some(patience)) => Some(Instant::now() + patience),
            Wait::Within(until) => Some(until),
        };
        let mut is_set = false;
        let mut read = pin!(stream.read_buf(input));
        let read = poll_fn(|cx| {
            if let Poll::Ready(read) = read.as_mut().poll(cx) {
                return Poll::Ready(Ok(read));
            }
            if !*hears_drain {
                *hears_drain = true;
                let _ = begun.as_mut().poll(cx); // only to be woken
            }
            if matches!(wait, Wait::Between(_)) && context.drain.has_begun() {
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
            deadline.poll(cx).map(|()| Err(Stop::Late))
        });
        match read.await?? {
            0 => Err(Stop::Gone),
            _ => Ok(()),
        }
    }

    /// Writes what has been answered.
    pub(super) async fn flush(&mut self, output: &mut Vec<u8>) -> Result<(), Stop> {
        if output.is_empty() {
            return Ok(());
        }
        let Wire { stream, deadline, context: ListenerContext { limits, budget, .. }, .. } = self;
        let mut written = 0;
        let mut waits = None;
        poll_fn(|cx| {
            while let Some(rest) = output.get(written..).filter(|rest| !rest.is_empty()) {
                match pin!(&mut *stream).poll_write(cx, rest) {
                    Poll::Ready(Ok(0)) | Poll::Ready(Err(_)) => return Poll::Ready(Err(Stop::Gone)),
                    Poll::Ready(Ok(some)) => written += some,
                    Poll::Pending => {
                        let at = Instant::now() + limits.write_timeout;
                        let deadline = deadline.get_or_insert_with(|| Deadline::new(at));
                        if waits.is_none() {
                            // Nobody may leave more unread than there is room for.
                            waits = budget.reserve(rest.len() as u64);
                            if waits.is_none() {
                                return Poll::Ready(Err(Stop::Cut(RespFault::NoMemory)));
                            }
                            deadline.set(at);
                        }
                        return deadline.poll(cx).map(|()| Err(Stop::Cut(RespFault::TooSlow)));
                    }
                }
            }
            Poll::Ready(Ok(()))
        })
        .await?;
        output.clear();
        if matches!(stream, Stream::Tls(_)) {
            timeout(limits.write_timeout, stream.flush()).await.map_err(|_| Stop::Cut(RespFault::TooSlow))??;
        }
        Ok(())
    }

    /// Ends politely: says that nothing more comes, and reads for a moment what is still on its way, because closing
    /// with unread bytes resets the connection and takes the last answer with it.
    pub(super) async fn linger(mut self) {
        let polite = async {
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
        let _ = timeout(LINGER, polite).await; // the caller had its chance
    }
}
