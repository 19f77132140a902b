//! A transaction.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Database, Executor, Postgres, Sqlite};

use super::failure::DatabaseFailure;
use super::time_limit::TimeLimit;
use super::{Sql, SqlRow};
use crate::Result;

/// A transaction. It happens at [`commit`](Tx::commit); dropped before, it never did.
pub(crate) struct Tx {
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

    /// Whether this is PostgreSQL, for the few statements that differ.
    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.inner, Inner::Postgres(_))
    }

    /// Whether another transaction was in the way: the same again may well succeed.
    pub(crate) fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// Allows for more time than other transactions have.
    pub(crate) fn extend(&mut self, more: Duration) {
        if let TimeLimit::Until(deadline) = &mut self.time_limit {
            *deadline += more;
        }
    }

    /// Runs a statement; answers how many rows it touched.
    pub(crate) async fn run(&mut self, sql: Sql) -> Result<u64> {
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

    /// Hands over the rows of an answer, one after the other, however many they are. Ends at the first error.
    pub(crate) async fn each(&mut self, sql: Sql, mut take: impl FnMut(SqlRow) -> Result<()>) -> Result<()> {
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

    /// All rows of an answer that is known to be short.
    pub(crate) async fn all(&mut self, sql: Sql) -> Result<Vec<SqlRow>> {
        let mut rows = Vec::new();
        let keep = |row| {
            rows.push(row);
            Ok(())
        };
        self.each(sql, keep).await?;
        Ok(rows)
    }

    /// The first row of an answer, if there is any.
    pub(crate) async fn one(&mut self, sql: Sql) -> Result<Option<SqlRow>> {
        Ok(self.all(sql).await?.into_iter().next())
    }

    /// Makes it so, durable when it answers. After [`Unavailable`](crate::Error::Unavailable) it may be so nevertheless: only the
    /// answer got lost.
    pub(crate) async fn commit(self) -> Result<()> {
        let done = match self.inner {
            Inner::Sqlite(session) => session.end("COMMIT", self.time_limit).await,
            Inner::Postgres(session) => session.end("COMMIT", self.time_limit).await,
        };
        done.map_err(|failure| failure.error)
    }

    /// Undoes everything. Dropping does the same, but costs PostgreSQL the connection.
    pub(crate) async fn rollback(self) -> Result<()> {
        let done = match self.inner {
            Inner::Sqlite(session) => session.end("ROLLBACK", self.time_limit).await,
            Inner::Postgres(session) => session.end("ROLLBACK", self.time_limit).await,
        };
        done.map_err(|failure| failure.error)
    }

    /// Lets the statements of this transaction take longer; PostgreSQL only.
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
/// Not a `Transaction` of sqlx, which gives a connection back to its pool whatever happened: one to a PostgreSQL that fell
/// silent, and one to a SQLite that undid everything by itself because the disk was full, on which no other transaction
/// would ever begin. This one is closed instead, unless its transaction came to an end; that is a rollback to both.
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
