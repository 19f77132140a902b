//! How long to wait for a database, and what it means if that was too short.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::time::Duration;

use futures_core::Stream;
use tokio::time::{Instant, timeout, timeout_at};

use super::fault::Complaint;
use crate::Error;

/// How long to wait.
#[derive(Clone, Copy)]
pub(super) enum Patience {
    /// For everything together.
    Until(Instant),
    /// For each statement, and each row of its answer.
    ForEach(Duration),
}

impl Patience {
    /// For everything from now on.
    pub(super) fn of(patience: Duration) -> Patience {
        Patience::Until(Instant::now() + patience)
    }

    /// Waits no longer than it lasts.
    pub(super) async fn bound<T>(self, work: impl Future<Output = sqlx::Result<T>>) -> Result<T, Complaint> {
        let done = match self {
            Patience::Until(deadline) => timeout_at(deadline, work).await,
            Patience::ForEach(patience) => timeout(patience, work).await,
        };
        match done {
            Ok(done) => done.map_err(Complaint::from),
            Err(_) => Err(Complaint::of(Error::Away("no answer in time".to_owned()))),
        }
    }

    /// Waits for every row of an answer, until one of them is refused.
    pub(super) async fn walk<R>(
        self,
        mut rows: Pin<Box<impl Stream<Item = sqlx::Result<R>> + ?Sized>>,
        mut take: impl FnMut(R) -> crate::Result<()>,
    ) -> Result<(), Complaint> {
        loop {
            let next = poll_fn(|context| rows.as_mut().poll_next(context));
            match self.bound(async { next.await.transpose() }).await? {
                Some(row) => take(row).map_err(Complaint::of)?,
                None => return Ok(()),
            }
        }
    }
}
