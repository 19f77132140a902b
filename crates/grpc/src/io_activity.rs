//! Whether bytes move on a connection: counted where they scope, looked at by whoever keeps it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use tollgate_net::Stream;

/// What moved so far. Clones are the same io_activity.
#[derive(Clone, Debug)]
pub(super) struct IoActivity(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    start: Instant,
    /// Times something came in.
    reads: AtomicU64,
    /// Bytes that came in since a call got on.
    idle_bytes: AtomicU64,
    /// Since when nobody takes what we write, in milliseconds from the start, plus one; 0 while it moves.
    stuck: AtomicU64,
}

impl IoActivity {
    fn new() -> IoActivity {
        IoActivity(Arc::new(Inner {
            start: Instant::now(),
            reads: AtomicU64::new(0),
            idle_bytes: AtomicU64::new(0),
            stuck: AtomicU64::new(0),
        }))
    }

    /// How often something came in.
    pub(super) fn reads(&self) -> u64 {
        self.0.reads.load(Ordering::Relaxed)
    }

    /// Since when nobody takes what we write.
    pub(super) fn stuck(&self) -> Option<Instant> {
        let millis = self.0.stuck.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.0.start + std::time::Duration::from_millis(millis))
    }

    /// A call got on: it came in, or bytes of its message did.
    pub(super) fn got_on(&self) {
        self.0.idle_bytes.store(0, Ordering::Relaxed);
    }

    /// Bytes that came in since a call got on.
    pub(super) fn idle_bytes(&self) -> u64 {
        self.0.idle_bytes.load(Ordering::Relaxed)
    }

    fn read(&self, bytes: usize) {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        self.0.idle_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn wrote(&self, moved: bool) {
        let Inner { start, stuck, .. } = &*self.0;
        match (moved, stuck.load(Ordering::Relaxed)) {
            (true, 0) => {}
            (true, _) => stuck.store(0, Ordering::Relaxed),
            (false, 0) => {
                let millis = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
                stuck.store(millis + 1, Ordering::Relaxed);
            }
            (false, _) => {}
        }
    }
}

/// A connection whose io_activity can be felt.
pub(super) struct TrackedIo {
    stream: Stream,
    io_activity: IoActivity,
}

impl TrackedIo {
    /// The connection, and its io_activity.
    pub(super) fn new(stream: Stream) -> (TrackedIo, IoActivity) {
        let io_activity = IoActivity::new();
        (TrackedIo { stream, io_activity: io_activity.clone() }, io_activity)
    }
}

impl AsyncRead for TrackedIo {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            self.io_activity.read(buf.filled().len() - before);
        }
        read
    }
}

impl AsyncWrite for TrackedIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.io_activity.wrote(written.is_ready());
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.io_activity.wrote(flushed.is_ready()); // TLS writes what it held back
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
