//! Notifications of new generations.
//!
//! A notification does not say what changed, and several changes may share one. The next read finds all of them, so
//! none is lost. A lost connection notifies as well: something may have been missed.

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
use crate::db::Connections;

/// PostgreSQL's notification channel.
pub(crate) const CHANNEL: &str = "tollgate_generation";
/// Silence after which the connection is checked.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// How long that check, or connecting, may take.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// Delay before reconnecting: first and longest.
const RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// How often to check whether another process wrote to the SQLite file.
const FILE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Listens for new generations until dropped.
#[derive(Debug)]
pub struct GenerationListener {
    changed: Arc<Notify>,
    task: AbortHandle,
}

impl Control {
    /// Listens for changes by this process and by others. Needs a runtime.
    pub fn listener(&self) -> GenerationListener {
        let changed = Arc::new(Notify::new());
        let (pool, committed, notify) = (self.pool().clone(), self.committed.subscribe(), changed.clone());
        let task = tokio::spawn(async move {
            let others = async {
                match &pool.connections {
                    Connections::Sqlite { readers, .. } => poll_file(&readers.connect_options(), &notify).await,
                    Connections::Postgres(pool) => listen(&pool.connect_options(), &notify).await,
                }
            };
            tokio::join!(forward_local(committed, &notify), others);
        });
        GenerationListener { changed, task: task.abort_handle() }
    }
}

impl GenerationListener {
    /// Waits until something may have changed since the last call. Cancel safe.
    pub async fn changed(&mut self) {
        self.changed.notified().await;
    }
}

impl Drop for GenerationListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward_local(mut committed: watch::Receiver<i64>, notify: &Notify) {
    while committed.changed().await.is_ok() {
        notify.notify_one();
    }
}

async fn listen(options: &PgConnectOptions, notify: &Notify) {
    let mut pause = RETRY_DELAY.0;
    loop {
        let connected = timeout(REPLY_TIMEOUT, connect(options)).await;
        if let Ok(Ok(mut listener)) = connected {
            pause = RETRY_DELAY.0;
            // Changes may have been missed while disconnected.
            notify.notify_one();
            while wait_for_notification(&mut listener).await {
                notify.notify_one();
            }
            notify.notify_one();
        }
        debug!("not connected for notifications");
        sleep(pause).await;
        pause = (pause * 2).min(RETRY_DELAY.1);
    }
}

/// Opens a dedicated connection without an idle timeout.
async fn connect(options: &PgConnectOptions) -> sqlx::Result<PgListener> {
    let pool = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
    let mut listener = PgListener::connect_with(&pool.connect_with(options.clone()).await?).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    Ok(listener)
}

/// Waits for a notification; false if the connection is broken. A query detects connections that are dead but silent.
async fn wait_for_notification(listener: &mut PgListener) -> bool {
    loop {
        match timeout(PING_INTERVAL, listener.try_recv()).await {
            Ok(notification) => return matches!(notification, Ok(Some(_))),
            Err(_) => {
                let asked = sqlx::query("SELECT 1").execute(&mut *listener);
                if !matches!(timeout(REPLY_TIMEOUT, asked).await, Ok(Ok(_))) {
                    return false;
                }
            }
        }
    }
}

async fn poll_file(options: &SqliteConnectOptions, notify: &Notify) {
    let mut connection: Option<SqliteConnection> = None;
    let mut last = None;
    loop {
        let version = match &mut connection {
            Some(connection) => data_version(connection).await,
            None => match options.connect().await {
                Ok(mut fresh) => {
                    // The value is only comparable within one connection.
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
                notify.notify_one();
            }
            Err(error) => {
                debug!(%error, "cannot check whether the file was changed");
                if let Some(broken) = connection.take() {
                    let _ = broken.close().await;
                }
            }
        }
        sleep(FILE_POLL_INTERVAL).await;
    }
}

/// A value that changes when another connection writes to the file.
async fn data_version(connection: &mut SqliteConnection) -> sqlx::Result<i64> {
    sqlx::query("PRAGMA data_version").fetch_one(connection).await?.try_get(0)
}
