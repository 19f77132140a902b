//! The buffers of a connection: filled and flushed, each wait with a deadline.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout};
use tollgate_net::{IDLE_GRACE, ListenerContext, Stream};

use super::{Http1Connection, IDLE_BUFFER_BYTES, READ_BYTES, Stop};

/// What a read waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The next request: a drain that begins shortens the wait.
    NextRequest,
    /// The rest of a request, or the next one during a drain.
    Rest,
}

impl Http1Connection<'_> {
    /// Moves the unconsumed input to the front, and reserves room behind it.
    pub(super) fn compact_input(&mut self) {
        if self.start == self.input.len() {
            self.input.clear();
        } else if self.start > 0 {
            self.input.drain(..self.start);
        }
        self.start = 0;
        if self.input.capacity() - self.input.len() < READ_BYTES / 2 {
            self.input.reserve(READ_BYTES);
        }
    }

    /// Frees large buffers. Only between requests: they may hold part of a body.
    pub(super) fn free_large_buffers(&mut self) {
        for buffer in self.buffers().into_iter().filter(|buffer| buffer.capacity() > IDLE_BUFFER_BYTES) {
            *buffer = Vec::new();
        }
    }

    pub(super) fn has_large_buffer(&mut self) -> bool {
        self.buffers().into_iter().any(|buffer| buffer.capacity() > IDLE_BUFFER_BYTES)
    }

    fn buffers(&mut self) -> [&mut Vec<u8>; 4] {
        [&mut self.input, &mut self.output, &mut self.body, &mut self.reply.body]
    }

    /// Reads some bytes before the deadline. A drain that begins shortens the wait for the next request.
    pub(super) async fn read(&mut self, awaited: Awaited) -> Result<(), Stop> {
        if self.input.capacity() == self.input.len() {
            self.input.reserve(READ_BYTES);
        }
        let Http1Connection {
            stream,
            input,
            deadline,
            context: ListenerContext { drain, .. },
            drain_begun,
            is_drain_polled,
            ..
        } = self;
        let mut read = pin!(stream.read_buf(input));
        let mut is_draining = false;
        let read = poll_fn(|cx| {
            if let Poll::Ready(read) = read.as_mut().poll(cx) {
                return Poll::Ready(Ok(read));
            }
            if !*is_drain_polled {
                *is_drain_polled = true;
                let _ = drain_begun.as_mut().poll(cx); // only registers the waker
            }
            if awaited == Awaited::NextRequest && !is_draining && drain.has_begun() {
                is_draining = true;
                deadline.set(Instant::now() + IDLE_GRACE);
            }
            deadline.poll(cx).map(|()| Err(Stop::Close))
        });
        match read.await?? {
            0 => Err(Stop::Gone),
            _ => Ok(()),
        }
    }

    /// Writes the output before the deadline.
    pub(super) async fn flush(&mut self) -> Result<(), Stop> {
        if self.output.is_empty() {
            return Ok(());
        }
        let Http1Connection { stream, output, deadline, context: ListenerContext { limits, budget, .. }, .. } = self;
        let mut written = 0;
        let mut permit = None;
        poll_fn(|cx| {
            while let Some(rest) = output.get(written..).filter(|rest| !rest.is_empty()) {
                match pin!(&mut *stream).poll_write(cx, rest) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(Stop::Gone)),
                    Poll::Ready(Ok(some)) => written += some,
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(Stop::Gone)),
                    Poll::Pending => {
                        if permit.is_none() {
                            // Unread responses count towards the byte budget.
                            permit = budget.reserve(rest.len() as u64);
                            if permit.is_none() {
                                return Poll::Ready(Err(Stop::Gone));
                            }
                            deadline.set(Instant::now() + limits.write_timeout);
                        }
                        return deadline.poll(cx).map(|()| Err(Stop::Gone));
                    }
                }
            }
            Poll::Ready(Ok(()))
        })
        .await?;
        output.clear();
        if matches!(stream, Stream::Tls(_)) {
            timeout(limits.write_timeout, stream.flush()).await.map_err(|_| Stop::Gone)??;
        }
        Ok(())
    }
}
