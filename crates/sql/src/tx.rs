//! Transactions.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Database, Executor, Postgres, Sqlite};

use crate::Result;
use crate::failure::DatabaseFailure;
use crate::time_limit::TimeLimit;
use crate::{DatabaseFuture, Sql, SqlRow};

/// A transaction. Dropped before [`commit`](Tx::commit) it is rolled back.
pub struct Tx {
    inner: Inner,
    pub(super) time_limit: TimeLimit,
    retryable: bool,
}

enum Inner {
    Sqlite(TxConnection<Sqlite>),
    Postgres(TxConnection<Postgres>),
}

impl Tx {
    pub(super) fn sqlite(session: TxConnection<Sqlite>, time_limit: TimeLimit) -> Tx {
        Tx { inner: Inner::Sqlite(session), time_limit, retryable: false }
    }

    pub(super) fn postgres(session: TxConnection<Postgres>, time_limit: TimeLimit) -> Tx {
        Tx { inner: Inner::Postgres(session), time_limit, retryable: false }
    }

    /// True for PostgreSQL, for the few statements that differ.
    pub fn is_postgres(&self) -> bool {
        matches!(self.inner, Inner::Postgres(_))
    }

    /// True if a statement failed because of another transaction; a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// Extends the deadline.
    pub fn extend(&mut self, more: Duration) {
        if let TimeLimit::Until(deadline) = &mut self.time_limit {
            *deadline += more;
        }
    }

    /// Runs a statement and returns the number of affected rows.
    pub fn run(&mut self, sql: Sql) -> DatabaseFuture<'_, u64> {
        Box::pin(self.run_unboxed(sql))
    }

    async fn run_unboxed(&mut self, sql: Sql) -> Result<u64> {
        sql.check()?;
        let done = match &mut self.inner {
            Inner::Sqlite(session) => {
                let query =
                    sql.values.iter().fold(sqlx::query(sql.for_sqlite()), |query, value| value.to_sqlite(query));
                self.time_limit.bound(query.execute(&mut *session.connection)).await.map(|done| done.rows_affected())
            }
            Inner::Postgres(session) => {
                let query =
                    sql.values.iter().fold(sqlx::query(sql.for_postgres()), |query, value| value.to_postgres(query));
                let connection = &mut *session.connection;
                self.time_limit.bound(query.execute(connection)).await.map(|done| done.rows_affected())
            }
        };
        done.map_err(|failure| self.note_failure(failure))
    }

    /// Passes the rows of a result to `take`, one by one. Ends at the first error.
    pub async fn each(&mut self, sql: Sql, mut take: impl FnMut(SqlRow) -> Result<()>) -> Result<()> {
        sql.check()?;
        let done = match &mut self.inner {
            Inner::Sqlite(session) => {
                let query =
                    sql.values.iter().fold(sqlx::query(sql.for_sqlite()), |query, value| value.to_sqlite(query));
                self.time_limit.walk(query.fetch(&mut *session.connection), |row| take(SqlRow::Sqlite(row))).await
            }
            Inner::Postgres(session) => {
                let query =
                    sql.values.iter().fold(sqlx::query(sql.for_postgres()), |query, value| value.to_postgres(query));
                self.time_limit.walk(query.fetch(&mut *session.connection), |row| take(SqlRow::Postgres(row))).await
            }
        };
        done.map_err(|failure| self.note_failure(failure))
    }

    /// All rows of a short result.
    pub fn all(&mut self, sql: Sql) -> DatabaseFuture<'_, Vec<SqlRow>> {
        Box::pin(async move {
            let mut rows = Vec::new();
            let keep = |row| {
                rows.push(row);
                Ok(())
            };
            self.each(sql, keep).await?;
            Ok(rows)
        })
    }

    /// The first row of a result, if there is any.
    pub async fn one(&mut self, sql: Sql) -> Result<Option<SqlRow>> {
        Ok(self.all(sql).await?.into_iter().next())
    }

    /// Commits; durable on return. After [`Unavailable`](crate::Error::Unavailable) the transaction may have been
    /// committed: only the reply was lost.
    pub fn commit(self) -> DatabaseFuture<'static, ()> {
        Box::pin(self.end("COMMIT"))
    }

    /// Rolls back. Dropping has the same effect, but closes the connection.
    pub fn rollback(self) -> DatabaseFuture<'static, ()> {
        Box::pin(self.end("ROLLBACK"))
    }

    async fn end(self, how: &'static str) -> Result<()> {
        let done = match self.inner {
            Inner::Sqlite(session) => session.end(how, self.time_limit).await,
            Inner::Postgres(session) => session.end(how, self.time_limit).await,
        };
        done.map_err(|failure| failure.error)
    }

    /// Extends the statement timeout of this transaction; PostgreSQL only.
    pub(super) async fn allow(&mut self, most: Duration) -> Result<()> {
        let text = most.as_millis().to_string();
        self.one(Sql::new("SELECT set_config('statement_timeout', $1, TRUE)", vec![text.into()])).await.map(|_| ())
    }

    fn note_failure(&mut self, failure: DatabaseFailure) -> crate::Error {
        self.retryable |= failure.retryable;
        failure.error
    }
}

/// A connection inside a transaction.
///
/// Not a `Transaction` of sqlx, which returns the connection to the pool in any case: also one to a PostgreSQL that
/// does not answer, and one to a SQLite that rolled back by itself because the disk was full, where no transaction
/// could begin again. This one is closed unless its transaction ended, which rolls back in both databases.
pub(super) struct TxConnection<DB: Database> {
    connection: PoolConnection<DB>,
    ended: bool,
}

impl<DB: Database> TxConnection<DB>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    pub(super) async fn begin(connection: PoolConnection<DB>, how: &'static str) -> sqlx::Result<TxConnection<DB>> {
        let mut session = TxConnection { connection, ended: false };
        session.connection.execute(sqlx::raw_sql(how)).await?;
        Ok(session)
    }

    async fn end(mut self, how: &'static str, time_limit: TimeLimit) -> Result<(), DatabaseFailure> {
        time_limit.bound(self.connection.execute(sqlx::raw_sql(how))).await?;
        self.ended = true;
        Ok(())
    }
}

impl<DB: Database> Drop for TxConnection<DB> {
    fn drop(&mut self) {
        if !self.ended {
            self.connection.close_on_drop();
        }
    }
}
