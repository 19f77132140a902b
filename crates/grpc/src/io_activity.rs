//! I/O activity of a connection: counted in the stream wrapper, read by `keep_alive`.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use tollgate_net::Stream;

/// I/O counters of one connection. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct IoActivity(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    start: Instant,
    /// Number of reads.
    reads: AtomicU64,
    /// Bytes received since a call last made progress.
    idle_bytes: AtomicU64,
    /// When writes became blocked, in milliseconds from `start`, plus one; 0 while writes proceed.
    write_blocked: AtomicU64,
}

impl IoActivity {
    fn new() -> IoActivity {
        IoActivity(Arc::new(Inner {
            start: Instant::now(),
            reads: AtomicU64::new(0),
            idle_bytes: AtomicU64::new(0),
            write_blocked: AtomicU64::new(0),
        }))
    }

    /// Number of reads so far.
    pub(super) fn reads(&self) -> u64 {
        self.0.reads.load(Ordering::Relaxed)
    }

    /// When writes became blocked; `None` while they proceed.
    pub(super) fn write_blocked_since(&self) -> Option<Instant> {
        let millis = self.0.write_blocked.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.0.start + std::time::Duration::from_millis(millis))
    }

    /// A call made progress: it arrived, or bytes of its message did.
    pub(super) fn record_progress(&self) {
        self.0.idle_bytes.store(0, Ordering::Relaxed);
    }

    /// Bytes received since a call last made progress.
    pub(super) fn idle_bytes(&self) -> u64 {
        self.0.idle_bytes.load(Ordering::Relaxed)
    }

    fn record_read(&self, bytes: usize) {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        self.0.idle_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn record_write(&self, moved: bool) {
        let Inner { start, write_blocked, .. } = &*self.0;
        match (moved, write_blocked.load(Ordering::Relaxed)) {
            (true, 0) => {}
            (true, _) => write_blocked.store(0, Ordering::Relaxed),
            (false, 0) => {
                let millis = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
                write_blocked.store(millis + 1, Ordering::Relaxed);
            }
            (false, _) => {}
        }
    }
}

/// A stream that records its I/O activity.
pub(super) struct TrackedIo {
    stream: Stream,
    io_activity: IoActivity,
}

impl TrackedIo {
    /// Wraps a stream; returns the wrapper and its counters.
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
            self.io_activity.record_read(buf.filled().len() - before);
        }
        read
    }
}

impl AsyncWrite for TrackedIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.io_activity.record_write(written.is_ready());
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.io_activity.record_write(flushed.is_ready()); // a TLS flush writes buffered records
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
