//! Connections, and how transactions begin.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use sqlx::pool::PoolOptions;
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqliteSynchronous};

use crate::DatabaseFuture;
use crate::time_limit::TimeLimit;
use crate::tx::{Tx, TxConnection};
use crate::{DatabaseUrl, Error, Result};

/// How long reading a whole table may take.
const FULL_READ_TIMEOUT: Duration = Duration::from_secs(600);

const CONNECTIONS: u32 = 8;
const SQLITE_READERS: u32 = 4;

/// Time limits of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseTimeouts {
    /// How long a transaction may take, and a single row of a long result. PostgreSQL ends a transaction that is idle for
    /// twice as long: it may hold the lock that all writers need.
    pub transaction: Duration,
    /// How long a statement may take, including the wait for other writers.
    pub statement: Duration,
    /// How long to wait for a connection.
    pub acquire: Duration,
}

impl Default for DatabaseTimeouts {
    fn default() -> DatabaseTimeouts {
        DatabaseTimeouts {
            transaction: Duration::from_secs(5),
            statement: Duration::from_secs(2),
            acquire: Duration::from_secs(3),
        }
    }
}

/// Connections to one database, and their time limits.
#[derive(Clone)]
pub struct DatabasePool {
    /// Its connections, by kind.
    pub connections: Connections,
    timeouts: DatabaseTimeouts,
}

/// Connections to one database.
#[derive(Clone)]
pub enum Connections {
    /// SQLite allows one writer at a time, so there is one connection for writing: the queue of the pool is fair, the
    /// file lock is not.
    Sqlite {
        /// The connection for writing.
        writer: SqlitePool,
        /// Connections for reading, concurrent with the writer thanks to the write-ahead log.
        readers: SqlitePool,
    },
    /// PostgreSQL.
    Postgres(PgPool),
}

impl DatabasePool {
    /// Prepares connections without opening any.
    pub fn new(url: &DatabaseUrl, timeouts: DatabaseTimeouts) -> Result<DatabasePool> {
        let connections = match url {
            DatabaseUrl::Sqlite(path) => sqlite(path, timeouts)?,
            DatabaseUrl::Postgres(url) => postgres(url, timeouts)?,
        };
        Ok(DatabasePool { connections, timeouts })
    }

    /// Begins a transaction that writes.
    pub async fn write(&self) -> Result<Tx> {
        let limit = self.limit();
        match &self.connections {
            Connections::Sqlite { writer, .. } => begin_sqlite(writer, "BEGIN IMMEDIATE", limit).await,
            // READ COMMITTED is sufficient: a writer first takes the lock of all writers and then sees their commits.
            Connections::Postgres(pool) => begin_postgres(pool, "BEGIN ISOLATION LEVEL READ COMMITTED", limit).await,
        }
    }

    /// The same for whole tables, which take longer; not concurrent with other writers.
    pub async fn write_long(&self) -> Result<Tx> {
        self.lengthen(self.write().await?).await
    }

    /// Begins a transaction that reads one snapshot.
    pub async fn read(&self) -> Result<Tx> {
        let limit = self.limit();
        match &self.connections {
            Connections::Sqlite { readers, .. } => begin_sqlite(readers, "BEGIN", limit).await,
            Connections::Postgres(pool) => {
                begin_postgres(pool, "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", limit).await
            }
        }
    }

    /// The same for whole tables.
    pub async fn read_long(&self) -> Result<Tx> {
        self.lengthen(self.read().await?).await
    }

    fn limit(&self) -> TimeLimit {
        TimeLimit::of(self.timeouts.transaction)
    }

    async fn lengthen(&self, mut tx: Tx) -> Result<Tx> {
        if tx.is_postgres() {
            tx.allow(FULL_READ_TIMEOUT).await?;
        }
        tx.time_limit = TimeLimit::ForEach(self.timeouts.transaction);
        Ok(tx)
    }
}

fn begin_sqlite<'a>(pool: &'a SqlitePool, how: &'static str, time_limit: TimeLimit) -> DatabaseFuture<'a, Tx> {
    Box::pin(async move {
        let session = async { TxConnection::begin(pool.acquire().await?, how).await };
        let session = time_limit.bound(session).await.map_err(|failure| failure.error)?;
        Ok(Tx::sqlite(session, time_limit))
    })
}

fn begin_postgres<'a>(pool: &'a PgPool, how: &'static str, time_limit: TimeLimit) -> DatabaseFuture<'a, Tx> {
    Box::pin(async move {
        let session = async { TxConnection::begin(pool.acquire().await?, how).await };
        let session = time_limit.bound(session).await.map_err(|failure| failure.error)?;
        Ok(Tx::postgres(session, time_limit))
    })
}

fn pool<DB: sqlx::Database>(connections: u32, timeouts: DatabaseTimeouts) -> PoolOptions<DB> {
    PoolOptions::new().max_connections(connections).acquire_timeout(timeouts.acquire)
}

fn sqlite(path: &Path, timeouts: DatabaseTimeouts) -> Result<Connections> {
    make_private(path).map_err(|error| match error.kind() {
        ErrorKind::StorageFull => Error::Full(error.to_string()),
        _ => Error::Unavailable(format!("{} cannot be opened: {error}", path.display())),
    })?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(true)
        .busy_timeout(timeouts.statement)
        .synchronous(SqliteSynchronous::Full)
        .pragma("journal_size_limit", "67108864");
    let writer = pool(1, timeouts).idle_timeout(None).max_lifetime(None);
    let readers = pool(SQLITE_READERS, timeouts);
    Ok(Connections::Sqlite {
        // Only the writer enables the write-ahead log: doing so takes a lock, and the file stores the setting.
        writer: writer.connect_lazy_with(options.clone().journal_mode(SqliteJournalMode::Wal)),
        readers: readers.connect_lazy_with(options.pragma("query_only", "ON")),
    })
}

/// Creates the file if absent, readable only by its owner: it holds hashes of tokens and keys of clients. SQLite gives
/// its side files the same permissions.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(|_| ())
}

/// The error for a URL of PostgreSQL that cannot be read, without any part of it.
const UNREADABLE_URL: &str = "invalid database URL: write postgres://USER@HOST:PORT/DATABASE, and after `?` only \
                              parameters of PostgreSQL; sslmode is disable, allow, prefer, require, verify-ca or verify-full";

fn postgres(url: &str, timeouts: DatabaseTimeouts) -> Result<Connections> {
    // The error of the library quotes parts of the URL, which may be a misplaced password.
    let options = PgConnectOptions::from_str(url).map_err(|_| Error::Unexpected(UNREADABLE_URL.to_owned()))?;
    let options = options.application_name("tollgate").options([
        ("statement_timeout", timeouts.statement.as_millis().to_string()),
        ("idle_in_transaction_session_timeout", (timeouts.transaction * 2).as_millis().to_string()),
    ]);
    Ok(Connections::Postgres(pool(CONNECTIONS, timeouts).connect_lazy_with(options)))
}

impl fmt::Debug for DatabasePool {
    /// Omits the options, which contain the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.connections {
            Connections::Sqlite { .. } => "DatabasePool(sqlite)",
            Connections::Postgres(_) => "DatabasePool(postgres)",
        })
    }
}
