//! What the servers of this thread say to their log.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing::subscriber::DefaultGuard;

/// Hears everything that is logged on this thread, until it is dropped.
pub struct Log {
    lines: Lines,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    pub fn listen() -> Log {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
        Log { lines, _guard: tracing::subscriber::set_default(subscriber) }
    }

    /// Lines that say this.
    pub fn count(&self, what: &str) -> usize {
        let lines = self.lines.0.lock().expect("no panic");
        String::from_utf8_lossy(&lines).lines().filter(|line| line.contains(what)).count()
    }

    pub fn clear(&self) {
        self.lines.0.lock().expect("no panic").clear();
    }
}
