//! A database for a test: the same test runs on SQLite and on PostgreSQL.

use sqlx::{AssertSqlSafe, Connection, PgConnection, Row, SqliteConnection};
use tempfile::TempDir;
use tollgate_control::{Author, Control, Place};
use tollgate_lab::postgres;

/// A fresh database with its tables.
pub struct Database {
    /// A node on it.
    pub control: Control,
    pub place: Place,
    _files: Option<TempDir>,
}

impl Database {
    pub async fn sqlite() -> Database {
        let files = tempfile::tempdir().unwrap();
        let place = Place::Sqlite(files.path().join("tollgate.db"));
        Database::at(place, Some(files)).await
    }

    pub async fn postgres() -> Database {
        let url = tokio::task::spawn_blocking(postgres::database).await.unwrap();
        Database::at(Place::Postgres(url), None).await
    }

    async fn at(place: Place, files: Option<TempDir>) -> Database {
        let control = Control::open(&place).await.unwrap();
        control.migrate().await.unwrap();
        Database { control, place, _files: files }
    }

    /// Another node on it, with connections of its own.
    pub fn node(&self) -> Control {
        Control::new(&self.place).unwrap()
    }

    /// Runs SQL as somebody who uses the tables with tools of their own.
    pub async fn run(&self, text: &str) {
        let text = AssertSqlSafe(text.to_owned());
        match &self.place {
            Place::Sqlite(path) => {
                let mut connection = SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
                sqlx::raw_sql(text).execute(&mut connection).await.unwrap();
            }
            Place::Postgres(url) => {
                let mut connection = PgConnection::connect(url).await.unwrap();
                sqlx::raw_sql(text).execute(&mut connection).await.unwrap();
            }
        }
    }

    /// The first column of an answer, which is text.
    pub async fn texts(&self, text: &str) -> Vec<String> {
        let text = AssertSqlSafe(text.to_owned());
        match &self.place {
            Place::Sqlite(path) => {
                let mut connection = SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
                let rows = sqlx::query(text).fetch_all(&mut connection).await.unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
            Place::Postgres(url) => {
                let mut connection = PgConnection::connect(url).await.unwrap();
                let rows = sqlx::query(text).fetch_all(&mut connection).await.unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
        }
    }
}

/// Somebody at the command line.
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
