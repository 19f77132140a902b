//! Hears of changes when they are made.
//!
//! What is changed is only that there is something to look at: nobody is told what changed, and several changes may be one
//! word. So nothing can be lost that the next look would not find, and a connection that was lost is told of like a
//! change: something may have been missed.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, Row};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::Control;
use crate::db::DatabasePool;

/// What PostgreSQL tells of new generations on.
pub(crate) const CHANNEL: &str = "tollgate_generation";
/// How long a listener may hear nothing before it asks whether the line is still there.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// How long that answer, or a connection, may take.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait before connecting again, at first and at most.
const RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// How often to look whether another process wrote to the file.
const FILE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Somebody who listens, until dropped.
#[derive(Debug)]
pub struct GenerationListener {
    changed: Arc<Notify>,
    task: AbortHandle,
}

impl Control {
    /// Listens to changes: those made here at once, those of others as the database tells of them. Needs a runtime.
    pub fn listener(&self) -> GenerationListener {
        let changed = Arc::new(Notify::new());
        let (pool, committed, changed) = (self.pool().clone(), self.committed.subscribe(), changed.clone());
        let task = tokio::spawn(async move {
            let others = async {
                match &pool {
                    DatabasePool::Sqlite { readers, .. } => look_at_file(&readers.connect_options(), &changed).await,
                    DatabasePool::Postgres(pool) => listen(&pool.connect_options(), &changed).await,
                }
            };
            tokio::join!(hear_own(committed, &changed), others);
        });
        GenerationListener { changed, task: task.abort_handle() }
    }
}

impl GenerationListener {
    /// Waits until something may have changed since it was last asked. May be given up and asked again.
    pub async fn changed(&mut self) {
        self.changed.notified().await;
    }
}

impl Drop for GenerationListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn hear_own(mut committed: watch::Receiver<i64>, changed: &Notify) {
    while committed.changed().await.is_ok() {
        changed.notify_one();
    }
}

async fn listen(options: &PgConnectOptions, changed: &Notify) {
    let mut pause = RETRY_DELAY.0;
    loop {
        let connected = timeout(REPLY_TIMEOUT, connect(options)).await;
        if let Ok(Ok(mut listener)) = connected {
            pause = RETRY_DELAY.0;
            // What came between the last word and this one.
            changed.notify_one();
            while hear(&mut listener).await {
                changed.notify_one();
            }
            changed.notify_one();
        }
        debug!("not connected to hear of changes");
        sleep(pause).await;
        pause = (pause * 2).min(RETRY_DELAY.1);
    }
}

/// A connection for nothing else, which may be silent for as long as it likes.
async fn connect(options: &PgConnectOptions) -> sqlx::Result<PgListener> {
    let pool = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
    let mut listener = PgListener::connect_with(&pool.connect_with(options.clone()).await?).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    Ok(listener)
}

/// Waits for a word; false if the line is dead. A line that only seems to be there is found out by asking.
async fn hear(listener: &mut PgListener) -> bool {
    loop {
        match timeout(PING_INTERVAL, listener.try_recv()).await {
            Ok(word) => return matches!(word, Ok(Some(_))),
            Err(_) => {
                let asked = sqlx::query("SELECT 1").execute(&mut *listener);
                if !matches!(timeout(REPLY_TIMEOUT, asked).await, Ok(Ok(_))) {
                    return false;
                }
            }
        }
    }
}

async fn look_at_file(options: &SqliteConnectOptions, changed: &Notify) {
    let mut connection: Option<SqliteConnection> = None;
    let mut last = None;
    loop {
        let version = match &mut connection {
            Some(connection) => data_version(connection).await,
            None => match options.connect().await {
                Ok(mut fresh) => {
                    // Counted anew by each connection: what the last one said compares to nothing.
                    last = None;
                    let version = data_version(&mut fresh).await;
                    connection = Some(fresh);
                    version
                }
                Err(error) => Err(error),
            },
        };
        match version {
            Ok(version) if last == Some(version) => {}
            Ok(version) => {
                last = Some(version);
                changed.notify_one();
            }
            Err(error) => {
                debug!(%error, "cannot look whether the file was changed");
                if let Some(broken) = connection.take() {
                    let _ = broken.close().await;
                }
            }
        }
        sleep(FILE_POLL_INTERVAL).await;
    }
}

/// A number that is another one when another connection wrote to the file.
async fn data_version(connection: &mut SqliteConnection) -> sqlx::Result<i64> {
    sqlx::query("PRAGMA data_version").fetch_one(connection).await?.try_get(0)
}
