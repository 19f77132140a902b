//! SQL that bypasses the constraints of the tables, and SQL that they refuse.

use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use tollgate_control::DatabaseUrl;

use crate::databases::Database;

impl Database {
    /// Runs SQL as if the tables had no constraints.
    pub async fn run_unchecked(&self, text: &str) {
        match &self.url {
            DatabaseUrl::Sqlite(_) => self.run(&format!("PRAGMA ignore_check_constraints = ON; {text}")).await,
            DatabaseUrl::Postgres(_) => {
                let drop = "DO $$ DECLARE old RECORD; BEGIN FOR old IN SELECT conrelid::REGCLASS::TEXT AS t, conname \
                            FROM pg_constraint WHERE contype = 'c' AND conrelid::REGCLASS::TEXT LIKE 'rate_limit_%' \
                            LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', old.t, old.conname); END LOOP; END $$";
                self.run(drop).await;
                self.run(text).await;
            }
        }
    }

    /// The error of refused SQL.
    pub async fn refusal(&self, text: &str) -> String {
        let text = AssertSqlSafe(text.to_owned());
        let done = match &self.url {
            DatabaseUrl::Sqlite(path) => {
                let mut connection = SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
                sqlx::raw_sql(text).execute(&mut connection).await.map(|_| ())
            }
            DatabaseUrl::Postgres(url) => {
                let mut connection = PgConnection::connect(url).await.unwrap();
                sqlx::raw_sql(text).execute(&mut connection).await.map(|_| ())
            }
        };
        done.unwrap_err().to_string()
    }
}
