//! Buffered output of lines: a bounded buffer, and a thread that writes it.
//!
//! Callers append to the buffer; only the thread waits for the pipe, terminal or disk. When the buffer is full, lines
//! are dropped whole and counted. One buffer rather than a queue of lines: its bound is in bytes, appending allocates
//! nothing, and all lines that gather while the sink is busy leave in one write.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{fmt, fs, thread};

use parking_lot::{Condvar, Mutex};

/// Where lines go.
pub enum Sink {
    /// Standard error.
    Stderr,
    /// Standard output.
    Stdout,
    /// The end of a file, which [`Lines::reopen`] opens anew.
    File(PathBuf),
    /// Anything else.
    Other(Box<dyn Write + Send>),
}

/// Writes lines. Clones share one buffer and one thread.
#[derive(Clone)]
pub struct Lines(Arc<SharedBuffer>);

struct SharedBuffer {
    buffer: Mutex<Buffer>,
    /// Signals work to the thread.
    filled: Condvar,
    /// Signals that the buffer was written.
    emptied: Condvar,
    bytes_max: usize,
    dropped: AtomicU64,
}

#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    lines: u64,
    /// The thread is writing lines that it took from the buffer.
    busy: bool,
    reopen: bool,
}

impl Lines {
    /// Default bound of the buffer: 4 MiB.
    pub const BYTES_MAX: usize = 4 << 20;

    /// Opens the sink and starts its thread.
    pub fn start(sink: Sink) -> io::Result<Lines> {
        Lines::with_bytes_max(sink, Lines::BYTES_MAX)
    }

    /// [`start`](Lines::start) with another bound.
    pub fn with_bytes_max(sink: Sink, bytes_max: usize) -> io::Result<Lines> {
        let sink = OpenSink::new(sink)?;
        let shared = Arc::new(SharedBuffer {
            buffer: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            bytes_max,
            dropped: AtomicU64::new(0),
        });
        let writer = shared.clone();
        thread::Builder::new().name("tollgate-lines".to_owned()).spawn(move || writer.write_into(sink))?;
        Ok(Lines(shared))
    }

    /// Appends whole lines, each with its line end. Never waits for the sink.
    pub fn push(&self, lines: &[u8]) {
        let mut buffer = self.0.buffer.lock();
        if buffer.bytes.len() + lines.len() > self.0.bytes_max {
            drop(buffer);
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let was_empty = buffer.bytes.is_empty();
        buffer.bytes.extend_from_slice(lines);
        buffer.lines += 1;
        drop(buffer);
        if was_empty {
            self.0.filled.notify_one();
        }
    }

    /// Lines lost to a full buffer or a failed sink.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Reopens the file after the buffered lines, because it may have been rotated. For SIGHUP; other sinks are
    /// unaffected.
    pub fn reopen(&self) {
        self.0.buffer.lock().reopen = true;
        self.0.filled.notify_one();
    }

    /// Waits until everything is written, at most `within`. False if lines are left.
    pub fn flush(&self, within: Duration) -> bool {
        let mut buffer = self.0.buffer.lock();
        let waiting = |buffer: &mut Buffer| buffer.busy || buffer.reopen || !buffer.bytes.is_empty();
        !self.0.emptied.wait_while_for(&mut buffer, waiting, within).timed_out()
    }
}

impl SharedBuffer {
    fn write_into(&self, mut sink: OpenSink) {
        let mut spare = Vec::new();
        loop {
            let mut buffer = self.buffer.lock();
            buffer.busy = false;
            self.emptied.notify_all();
            self.filled.wait_while(&mut buffer, |buffer| buffer.bytes.is_empty() && !buffer.reopen);
            std::mem::swap(&mut buffer.bytes, &mut spare);
            let lines = std::mem::take(&mut buffer.lines);
            let reopen = std::mem::take(&mut buffer.reopen);
            buffer.busy = true;
            drop(buffer);
            if !spare.is_empty() && sink.write(&spare).is_err() {
                self.dropped.fetch_add(lines, Ordering::Relaxed);
            }
            spare.clear();
            if reopen {
                sink.reopen();
            }
        }
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

/// A sink that is ready to be written to.
struct OpenSink {
    writer: Box<dyn Write + Send>,
    path: Option<PathBuf>,
}

impl OpenSink {
    fn new(sink: Sink) -> io::Result<OpenSink> {
        Ok(match sink {
            // Own descriptors: a stuck write must not hold the lock that process exit needs.
            Sink::Stderr => {
                OpenSink { writer: Box::new(File::from(io::stderr().as_fd().try_clone_to_owned()?)), path: None }
            }
            Sink::Stdout => {
                OpenSink { writer: Box::new(File::from(io::stdout().as_fd().try_clone_to_owned()?)), path: None }
            }
            Sink::File(path) => OpenSink { writer: Box::new(open(&path)?), path: Some(path) },
            Sink::Other(writer) => OpenSink { writer, path: None },
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)?;
        self.writer.flush()
    }

    /// If reopening fails, the old file is still written to.
    fn reopen(&mut self) {
        let Some(path) = &self.path else { return };
        match open(path) {
            Ok(file) => self.writer = Box::new(file),
            Err(error) => {
                tracing::error!(file = %path.display(), %error, "cannot reopen the log; the old file stays in use")
            }
        }
    }
}

/// Opens for appending, readable only by owner and group: a decision log holds personal data.
fn open(path: &Path) -> io::Result<File> {
    // Opening a pipe would wait for its reader.
    if fs::metadata(path).is_ok_and(|facts| facts.file_type().is_fifo()) {
        return Err(io::Error::other("it is a pipe; use standard output to write to one"));
    }
    OpenOptions::new().append(true).create(true).mode(0o640).open(path)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn writes_lines_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let lines = Lines::start(Sink::File(path.clone())).unwrap();
        (0..1000).for_each(|n| lines.push(format!("{n}\n").as_bytes()));
        assert!(lines.flush(SOON));
        let expected: String = (0..1000).map(|n| format!("{n}\n")).collect();
        assert_eq!(fs::read_to_string(path).unwrap(), expected);
        assert_eq!(lines.dropped(), 0);
    }

    #[test]
    fn f64_an_unread_pipe_blocks_no_caller() {
        let (mut reader, writer) = io::pipe().unwrap();
        let lines = Lines::with_bytes_max(Sink::Other(Box::new(writer)), 10_000).unwrap();
        let line = [b'x'; 99].into_iter().chain([b'\n']).collect::<Vec<u8>>();
        let push = |count| (0..count).for_each(|_| lines.push(&line));
        let stuck = (0..1000).any(|_| {
            push(50);
            !lines.flush(Duration::from_millis(50))
        });
        assert!(stuck, "the pipe is full");
        let before = lines.dropped();
        push(1000);
        let lost = lines.dropped();
        assert!(lost - before >= 900, "{before} and then {lost} dropped");
        let reading = thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).unwrap();
            all
        });
        assert!(lines.flush(SOON), "a reader frees it");
        lines.push(b"end\n");
        assert!(lines.flush(SOON));
        assert_eq!(lines.dropped(), lost);
        drop(reading); // the thread holds the pipe for as long as the process lives
    }

    #[test]
    fn lines_lost_to_a_broken_sink_are_counted() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let lines = Lines::start(Sink::Other(Box::new(writer))).unwrap();
        lines.push(b"one\n");
        assert!(lines.flush(SOON));
        assert_eq!(lines.dropped(), 1);
    }

    #[test]
    fn a_rotated_file_is_opened_anew() {
        let dir = tempfile::tempdir().unwrap();
        let (path, old) = (dir.path().join("log"), dir.path().join("log.1"));
        let lines = Lines::start(Sink::File(path.clone())).unwrap();
        lines.push(b"one\n");
        assert!(lines.flush(SOON));
        fs::rename(&path, &old).unwrap();
        lines.push(b"two\n");
        lines.reopen();
        assert!(lines.flush(SOON));
        lines.push(b"three\n");
        assert!(lines.flush(SOON));
        assert_eq!(fs::read_to_string(old).unwrap(), "one\ntwo\n");
        assert_eq!(fs::read_to_string(path).unwrap(), "three\n");
    }

    #[test]
    fn a_pipe_is_rejected_as_log_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(Lines::start(Sink::File(path)).is_err());
    }
}
