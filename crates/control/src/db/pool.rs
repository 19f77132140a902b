//! Connections, and how transactions begin.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use sqlx::pool::PoolOptions;
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqliteSynchronous};

use super::time_limit::TimeLimit;
use super::tx::{Tx, TxConnection};
use crate::{DatabaseUrl, Error, Result};

/// How long a transaction may take in all, and a single row of a long answer.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one statement may take; a line of writers is part of it.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long to wait for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);
/// When PostgreSQL ends a transaction whose owner fell silent: it may hold the lock that all writers need.
const IDLE_IN_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a whole table may take to be read.
const FULL_READ_TIMEOUT: Duration = Duration::from_secs(600);

const CONNECTIONS: u32 = 8;
const SQLITE_READERS: u32 = 4;

/// Connections to one database.
#[derive(Clone)]
pub(crate) enum DatabasePool {
    /// SQLite lets one write at a time, so there is one connection to write with: waiting in a line of our own is fair,
    /// waiting for the lock of a file is not.
    Sqlite {
        /// The one that writes.
        writer: SqlitePool,
        /// Those that read, beside it: the log is written ahead.
        readers: SqlitePool,
    },
    /// PostgreSQL.
    Postgres(PgPool),
}

impl DatabasePool {
    /// Gets ready without connecting.
    pub(crate) fn new(url: &DatabaseUrl) -> Result<DatabasePool> {
        match url {
            DatabaseUrl::Sqlite(path) => sqlite(path),
            DatabaseUrl::Postgres(url) => postgres(url),
        }
    }

    /// Begins to change things.
    pub(crate) async fn write(&self) -> Result<Tx> {
        match self {
            DatabasePool::Sqlite { writer, .. } => begin_sqlite(writer, "BEGIN IMMEDIATE").await,
            // Not stricter: a writer first takes the lock that all writers take, and then sees what others committed.
            DatabasePool::Postgres(pool) => begin_postgres(pool, "BEGIN ISOLATION LEVEL READ COMMITTED").await,
        }
    }

    /// The same for whole tables, which take longer than anything else; not beside others who write.
    pub(crate) async fn write_long(&self) -> Result<Tx> {
        self.lengthen(self.write().await?).await
    }

    /// Begins to look at things as they are at one point in time.
    pub(crate) async fn read(&self) -> Result<Tx> {
        match self {
            DatabasePool::Sqlite { readers, .. } => begin_sqlite(readers, "BEGIN").await,
            DatabasePool::Postgres(pool) => {
                begin_postgres(pool, "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY").await
            }
        }
    }

    /// The same for whole tables.
    pub(crate) async fn read_long(&self) -> Result<Tx> {
        self.lengthen(self.read().await?).await
    }

    async fn lengthen(&self, mut tx: Tx) -> Result<Tx> {
        if tx.is_postgres() {
            tx.allow(FULL_READ_TIMEOUT).await?;
        }
        tx.time_limit = TimeLimit::ForEach(TRANSACTION_TIMEOUT);
        Ok(tx)
    }
}

async fn begin_sqlite(pool: &SqlitePool, how: &'static str) -> Result<Tx> {
    let time_limit = TimeLimit::of(TRANSACTION_TIMEOUT);
    let session = async { TxConnection::begin(pool.acquire().await?, how).await };
    let session = time_limit.bound(session).await.map_err(|failure| failure.error)?;
    Ok(Tx::sqlite(session, time_limit))
}

async fn begin_postgres(pool: &PgPool, how: &'static str) -> Result<Tx> {
    let time_limit = TimeLimit::of(TRANSACTION_TIMEOUT);
    let session = async { TxConnection::begin(pool.acquire().await?, how).await };
    let session = time_limit.bound(session).await.map_err(|failure| failure.error)?;
    Ok(Tx::postgres(session, time_limit))
}

fn pool<DB: sqlx::Database>(connections: u32) -> PoolOptions<DB> {
    PoolOptions::new().max_connections(connections).acquire_timeout(ACQUIRE_TIMEOUT)
}

fn sqlite(path: &Path) -> Result<DatabasePool> {
    make_private(path).map_err(|error| match error.kind() {
        ErrorKind::StorageFull => Error::Full(error.to_string()),
        _ => Error::Unavailable(format!("{} cannot be opened: {error}", path.display())),
    })?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(true)
        .busy_timeout(STATEMENT_TIMEOUT)
        .synchronous(SqliteSynchronous::Full)
        .pragma("journal_size_limit", "67108864");
    let writer = pool(1).idle_timeout(None).max_lifetime(None);
    let readers = pool(SQLITE_READERS);
    Ok(DatabasePool::Sqlite {
        // Only the writer turns the log on: doing so takes a lock, and the file remembers.
        writer: writer.connect_lazy_with(options.clone().journal_mode(SqliteJournalMode::Wal)),
        readers: readers.connect_lazy_with(options.pragma("query_only", "ON")),
    })
}

/// Makes the file if it is not there, for nobody else to read: hashes of tokens and names of clients are in it. SQLite
/// gives the files beside it the same permissions.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(|_| ())
}

fn postgres(url: &str) -> Result<DatabasePool> {
    let options = PgConnectOptions::from_str(url)
        .map_err(|error| Error::Unexpected(format!("the address of the database cannot be read: {error}")))?;
    let options = options.application_name("tollgate").options([
        ("statement_timeout", STATEMENT_TIMEOUT.as_millis().to_string()),
        ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION_TIMEOUT.as_millis().to_string()),
    ]);
    Ok(DatabasePool::Postgres(pool(CONNECTIONS).connect_lazy_with(options)))
}

impl fmt::Debug for DatabasePool {
    /// Without the options of the pool, among which is a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DatabasePool::Sqlite { .. } => "DatabasePool(sqlite)",
            DatabasePool::Postgres(_) => "DatabasePool(postgres)",
        })
    }
}
