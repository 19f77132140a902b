//! A database for a test: the same test runs on SQLite and on PostgreSQL.

use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, PgConnection, Row, SqliteConnection};
use tempfile::TempDir;
use tollgate_control::{Author, Control, DatabaseTimeouts, DatabaseUrl};
use tollgate_lab::postgres;

/// Time limits for a starved machine. Tests of the time limits themselves use the defaults.
const PATIENT: DatabaseTimeouts = DatabaseTimeouts {
    transaction: Duration::from_secs(120),
    statement: Duration::from_secs(60),
    acquire: Duration::from_secs(120),
};

/// A fresh database with its tables.
pub struct Database {
    /// A node that uses it.
    pub control: Control,
    pub url: DatabaseUrl,
    _files: Option<TempDir>,
}

impl Database {
    pub async fn sqlite() -> Database {
        let files = tempfile::tempdir().unwrap();
        let url = DatabaseUrl::Sqlite(files.path().join("tollgate.db"));
        Database::at(url, Some(files)).await
    }

    pub async fn postgres() -> Database {
        let url = tokio::task::spawn_blocking(postgres::database).await.unwrap();
        Database::at(DatabaseUrl::Postgres(url), None).await
    }

    fn at(url: DatabaseUrl, files: Option<TempDir>) -> Boxed<'static, Database> {
        Box::pin(async {
            let control = Control::with_timeouts(&url, PATIENT).unwrap();
            control.migrate().await.unwrap();
            Database { control, url, _files: files }
        })
    }

    /// Another node, with connections of its own.
    pub fn node(&self) -> Control {
        Control::with_timeouts(&self.url, PATIENT).unwrap()
    }

    /// Runs SQL directly, not through the control plane.
    pub fn run<'a>(&'a self, text: &'a str) -> Boxed<'a, ()> {
        Box::pin(self.run_unboxed(text))
    }

    async fn run_unboxed(&self, text: &str) {
        let text = AssertSqlSafe(text.to_owned());
        match &self.url {
            DatabaseUrl::Sqlite(path) => {
                let mut connection = sqlite_connection(path).await;
                sqlx::raw_sql(text).execute(&mut connection).await.unwrap();
            }
            DatabaseUrl::Postgres(url) => {
                let mut connection = postgres_connection(url).await;
                sqlx::raw_sql(text).execute(&mut connection).await.unwrap();
            }
        }
    }

    /// The first column of a result, as text.
    pub fn texts<'a>(&'a self, text: &'a str) -> Boxed<'a, Vec<String>> {
        Box::pin(self.texts_unboxed(text))
    }

    async fn texts_unboxed(&self, text: &str) -> Vec<String> {
        let text = AssertSqlSafe(text.to_owned());
        match &self.url {
            DatabaseUrl::Sqlite(path) => {
                let mut connection = sqlite_connection(path).await;
                let rows = sqlx::query(text).fetch_all(&mut connection).await.unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
            DatabaseUrl::Postgres(url) => {
                let mut connection = postgres_connection(url).await;
                let rows = sqlx::query(text).fetch_all(&mut connection).await.unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
        }
    }
}

/// Boxed, as all that follows: the compiler builds the code of an `async fn` anew in every codegen unit that awaits it.
type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

fn sqlite_connection(path: &Path) -> Boxed<'_, SqliteConnection> {
    Box::pin(async { SqliteConnection::connect(path.to_str().unwrap()).await.unwrap() })
}

fn postgres_connection(url: &str) -> Boxed<'_, PgConnection> {
    Box::pin(async { PgConnection::connect(url).await.unwrap() })
}

/// The author of changes from the command line.
pub fn author() -> Author {
    Author { id: "cli".to_owned(), name: "me".to_owned() }
}

/// Tests that run on both databases: `on_both! { async fn name(db: Database) { … } }`.
macro_rules! on_both {
    ($($(#[$attribute:meta])* async fn $name:ident($db:ident: Database) $body:block)*) => {
        $($(#[$attribute])*
        mod $name {
            use super::*;

            async fn test($db: $crate::databases::Database) $body

            #[tokio::test(flavor = "multi_thread")]
            async fn sqlite() {
                test($crate::databases::Database::sqlite().await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn postgres() {
                test($crate::databases::Database::postgres().await).await;
            }
        })*
    };
}
pub(crate) use on_both;
