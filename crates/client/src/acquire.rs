//! Waiting until the limit has room: first come, first served, among the callers of one client that ask the same.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::{Request, Span};

use crate::failure::RequestRejected;
use crate::{Client, RemoteDecision};

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
