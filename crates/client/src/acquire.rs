//! Waiting until the limit has room: first come, first served, among the callers of one client that ask the same.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tollgate_core::{Request, Span};

use crate::failure::RequestRejected;
use crate::{Client, RemoteDecision};

/// The lines of callers that wait, by what they ask. A line is gone when its last caller is.
#[derive(Default)]
pub(crate) struct WaitingLines(Mutex<HashMap<String, WaitingLine>>);

/// A fair lock: it is taken in the order in which it was asked for.
type WaitingLine = Arc<tokio::sync::Mutex<()>>;

/// A place in a line, which leaves no empty line behind.
struct LinePlace<'a> {
    lines: &'a WaitingLines,
    key: String,
    line: Option<WaitingLine>,
}

impl WaitingLines {
    fn join(&self, key: String) -> LinePlace<'_> {
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

impl Client {
    /// Waits until the request is allowed, for at most `within`; the last decision is returned, refused if there was no
    /// room in time. A caller that gives up has been charged nothing.
    pub async fn acquire(&self, request: &Request<'_>, within: Span) -> Result<RemoteDecision, RequestRejected> {
        let deadline = Instant::now() + Duration::from(within);
        let key = format!("{:?}", request.cost(0));
        let place = self.0.lines.join(key);
        let Some(line) = &place.line else { return self.check(request).await };
        let _turn = tokio::time::timeout_at(deadline, line.lock()).await.ok();
        loop {
            let decision = self.check(request).await?;
            let wait = decision.retry_after.filter(|_| !decision.allowed && !decision.never);
            match wait.map(Duration::from) {
                Some(wait) if Instant::now() + wait <= deadline => tokio::time::sleep(wait).await,
                _ => return Ok(decision),
            }
        }
    }
}
