//! Time limits of statements and transactions.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::time::Duration;

use futures_core::Stream;
use tokio::time::{Instant, timeout, timeout_at};

use crate::Error;
use crate::failure::DatabaseFailure;

/// How long to wait for the database.
#[derive(Clone, Copy)]
pub enum TimeLimit {
    /// A deadline for the whole transaction.
    Until(Instant),
    /// A timeout for each statement and each row of its result.
    ForEach(Duration),
}

impl TimeLimit {
    /// A deadline from now.
    pub fn of(time_limit: Duration) -> TimeLimit {
        TimeLimit::Until(Instant::now() + time_limit)
    }

    /// Runs `work` within the limit.
    pub async fn bound<T>(self, work: impl Future<Output = sqlx::Result<T>>) -> Result<T, DatabaseFailure> {
        let done = match self {
            TimeLimit::Until(deadline) => timeout_at(deadline, work).await,
            TimeLimit::ForEach(time_limit) => timeout(time_limit, work).await,
        };
        match done {
            Ok(done) => done.map_err(DatabaseFailure::from),
            Err(_) => Err(DatabaseFailure::of(Error::Unavailable("no answer in time".to_owned()))),
        }
    }

    /// Reads all rows of a result, until `take` refuses one.
    pub async fn walk<R>(
        self,
        mut rows: Pin<Box<impl Stream<Item = sqlx::Result<R>> + ?Sized>>,
        mut take: impl FnMut(R) -> crate::Result<()>,
    ) -> Result<(), DatabaseFailure> {
        loop {
            let next = poll_fn(|context| rows.as_mut().poll_next(context));
            match self.bound(async { next.await.transpose() }).await? {
                Some(row) => take(row).map_err(DatabaseFailure::of)?,
                None => return Ok(()),
            }
        }
    }
}
