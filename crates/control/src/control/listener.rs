//! Hears of changes when they are made.
//!
//! What is heard is only that there is something to look at: nobody is told what changed, and several changes may be one
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
use crate::db::Pool;

/// What PostgreSQL tells of new generations on.
pub(crate) const CHANNEL: &str = "tollgate_generation";
/// How long a listener may hear nothing before it asks whether the line is still there.
const SILENCE: Duration = Duration::from_secs(15);
/// How long that answer, or a connection, may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait before connecting again, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// How often to look whether another process wrote to the file.
const LOOK: Duration = Duration::from_secs(1);

/// Somebody who listens, until dropped.
#[derive(Debug)]
pub struct Listener {
    heard: Arc<Notify>,
    task: AbortHandle,
}

impl Control {
    /// Listens to changes: those made here at once, those of others as the database tells of them. Needs a runtime.
    pub fn listener(&self) -> Listener {
        let heard = Arc::new(Notify::new());
        let (pool, woken, bell) = (self.pool().clone(), self.woken.subscribe(), heard.clone());
        let task = tokio::spawn(async move {
            let others = async {
                match &pool {
                    Pool::Sqlite { readers, .. } => look_at_file(&readers.connect_options(), &bell).await,
                    Pool::Postgres(pool) => listen(&pool.connect_options(), &bell).await,
                }
            };
            tokio::join!(hear_own(woken, &bell), others);
        });
        Listener { heard, task: task.abort_handle() }
    }
}

impl Listener {
    /// Waits until something may have changed since it was last asked. May be given up and asked again.
    pub async fn heard(&mut self) {
        self.heard.notified().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn hear_own(mut woken: watch::Receiver<i64>, bell: &Notify) {
    while woken.changed().await.is_ok() {
        bell.notify_one();
    }
}

async fn listen(options: &PgConnectOptions, bell: &Notify) {
    let mut pause = PAUSE.0;
    loop {
        let connected = timeout(PATIENCE, connect(options)).await;
        if let Ok(Ok(mut listener)) = connected {
            pause = PAUSE.0;
            // What came between the last word and this one.
            bell.notify_one();
            while hear(&mut listener).await {
                bell.notify_one();
            }
            bell.notify_one();
        }
        debug!("not connected to hear of changes");
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE.1);
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
        match timeout(SILENCE, listener.try_recv()).await {
            Ok(word) => return matches!(word, Ok(Some(_))),
            Err(_) => {
                let asked = sqlx::query("SELECT 1").execute(&mut *listener);
                if !matches!(timeout(PATIENCE, asked).await, Ok(Ok(_))) {
                    return false;
                }
            }
        }
    }
}

async fn look_at_file(options: &SqliteConnectOptions, bell: &Notify) {
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
                bell.notify_one();
            }
            Err(error) => {
                debug!(%error, "cannot look whether the file was changed");
                if let Some(broken) = connection.take() {
                    let _ = broken.close().await;
                }
            }
        }
        sleep(LOOK).await;
    }
}

/// A number that is another one when another connection wrote to the file.
async fn data_version(connection: &mut SqliteConnection) -> sqlx::Result<i64> {
    sqlx::query("PRAGMA data_version").fetch_one(connection).await?.try_get(0)
}
