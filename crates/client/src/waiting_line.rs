//! Lines of callers that wait for the same: taken in the order in which they came.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The lines of callers that wait, by what they ask. A line is gone when its last caller is.
#[derive(Default)]
pub(crate) struct WaitingLines(Mutex<HashMap<String, WaitingLine>>);

/// A fair lock: it is taken in the order in which it was asked for.
pub(crate) type WaitingLine = Arc<tokio::sync::Mutex<()>>;

/// A place in a line, which leaves no empty line behind.
pub(crate) struct LinePlace<'a> {
    lines: &'a WaitingLines,
    key: String,
    pub(crate) line: Option<WaitingLine>,
}

impl WaitingLines {
    pub(crate) fn join(&self, key: String) -> LinePlace<'_> {
        let line = self.0.lock().entry(key.clone()).or_default().clone();
        LinePlace { lines: self, key, line: Some(line) }
    }
}

impl Drop for LinePlace<'_> {
    fn drop(&mut self) {
        let mut lines = self.lines.0.lock();
        drop(self.line.take());
        if lines.get(&self.key).is_some_and(|line| Arc::strong_count(line) == 1) {
            lines.remove(&self.key);
        }
    }
}
