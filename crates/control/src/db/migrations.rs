//! Schema migrations.
//!
//! Each database has its own scripts, with native types, because people read the tables too. A released script never
//! changes; a new one follows it.

use std::cmp::Ordering;
use std::time::Duration;

use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::{ConnectOptions, Connection, SqlSafeStr};

use tollgate_sql::{DatabaseFailure, TimeLimit};

use super::{Connections, DatabaseFuture, DatabasePool, Tx, sql};
use crate::{Error, Result};

/// Description, script for SQLite, script for PostgreSQL; the first is version 1.
const MIGRATIONS: &[(&str, &str, &str)] = &[
    (
        "tables",
        include_str!("../../migrations/sqlite/0001_tables.sql"),
        include_str!("../../migrations/postgres/0001_tables.sql"),
    ),
    (
        "rules of files",
        include_str!("../../migrations/sqlite/0002_rules_of_files.sql"),
        include_str!("../../migrations/postgres/0002_rules_of_files.sql"),
    ),
    (
        "by hand",
        include_str!("../../migrations/sqlite/0003_by_hand.sql"),
        include_str!("../../migrations/postgres/0003_by_hand.sql"),
    ),
    (
        "names and forms",
        include_str!("../../migrations/sqlite/0004_names_and_forms.sql"),
        include_str!("../../migrations/postgres/0004_names_and_forms.sql"),
    ),
    (
        "writers",
        include_str!("../../migrations/sqlite/0005_writers.sql"),
        include_str!("../../migrations/postgres/0005_writers.sql"),
    ),
    (
        "plans",
        include_str!("../../migrations/sqlite/0006_plans.sql"),
        include_str!("../../migrations/postgres/0006_plans.sql"),
    ),
    (
        "grants",
        include_str!("../../migrations/sqlite/0007_grants.sql"),
        include_str!("../../migrations/postgres/0007_grants.sql"),
    ),
    (
        "quota usage",
        include_str!("../../migrations/sqlite/0008_quota_usage.sql"),
        include_str!("../../migrations/postgres/0008_quota_usage.sql"),
    ),
    (
        "keys",
        include_str!("../../migrations/sqlite/0009_keys.sql"),
        include_str!("../../migrations/postgres/0009_keys.sql"),
    ),
    (
        "webhooks",
        include_str!("../../migrations/sqlite/0010_webhooks.sql"),
        include_str!("../../migrations/postgres/0010_webhooks.sql"),
    ),
    (
        "penalties",
        include_str!("../../migrations/sqlite/0011_penalties.sql"),
        include_str!("../../migrations/postgres/0011_penalties.sql"),
    ),
];

/// Not sqlx's default, which another program may use in the same database.
const TABLE: &str = "tollgate_migrations";

/// How long migrations may take, including the wait for another node that migrates.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(300);

/// The version of the tables compared with this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// The tables have the required version.
    Current,
    /// Migrations are missing: number applied, number known.
    Behind(usize, usize),
    /// A newer version migrated the tables.
    Ahead,
}

/// Compares the tables with this version.
pub(crate) async fn schema(tx: &mut Tx) -> Result<Schema> {
    let there = match tx.is_postgres() {
        true => sql!("SELECT 1 WHERE to_regclass('tollgate_migrations') IS NOT NULL"),
        false => sql!("SELECT 1 FROM sqlite_master WHERE name = 'tollgate_migrations'"),
    };
    if tx.one(there).await?.is_none() {
        return Ok(Schema::Behind(0, MIGRATIONS.len()));
    }
    let applied = tx.all(sql!("SELECT version FROM tollgate_migrations WHERE success ORDER BY version")).await?;
    Ok(match applied.len().cmp(&MIGRATIONS.len()) {
        Ordering::Less => Schema::Behind(applied.len(), MIGRATIONS.len()),
        Ordering::Equal => Schema::Current,
        Ordering::Greater => Schema::Ahead,
    })
}

/// Migrates the tables to this version and returns the number of steps. A second node waits for the first and finds
/// nothing to do.
pub(crate) fn migrate(pool: &DatabasePool) -> DatabaseFuture<'_, usize> {
    Box::pin(migrate_tables(pool))
}

async fn migrate_tables(pool: &DatabasePool) -> Result<usize> {
    // `MigrateError` is kept as a value, because `bound` would replace it.
    let migrated = async {
        Ok(match &pool.connections {
            Connections::Sqlite { writer, .. } => {
                let mut tx = writer.begin_with("BEGIN IMMEDIATE").await?;
                match run(&migrator(|(_, sqlite, _)| sqlite), &mut *tx).await {
                    Ok(steps) => tx.commit().await.map(|()| steps).map_err(MigrateError::from),
                    Err(error) => Err(error),
                }
            }
            Connections::Postgres(pool) => {
                let timeout = [("statement_timeout", MIGRATION_TIMEOUT.as_millis().to_string())];
                let mut connection = pool.connect_options().as_ref().clone().options(timeout).connect().await?;
                // A session lock: it ends with the connection.
                sqlx::query("SELECT pg_advisory_lock(1953459300)").execute(&mut connection).await?;
                let steps = run(&migrator(|(_, _, postgres)| postgres), &mut connection).await;
                connection.close().await?;
                steps
            }
        })
    };
    let migrated = TimeLimit::of(MIGRATION_TIMEOUT).bound(migrated).await.map_err(|failure| failure.error)?;
    migrated.map_err(refused)
}

async fn run<C: Migrate>(migrator: &Migrator, connection: &mut C) -> Result<usize, MigrateError> {
    connection.ensure_migrations_table(TABLE).await?;
    let before = connection.list_applied_migrations(TABLE).await?.len();
    migrator.run_direct(None, connection, false).await?;
    Ok(migrator.iter().count().saturating_sub(before))
}

fn migrator(text: impl Fn(&(&str, &'static str, &'static str)) -> &'static str) -> Migrator {
    let versions = (1..).zip(MIGRATIONS);
    let migrations = versions.map(|(version, migration)| {
        Migration::new(version, migration.0.into(), MigrationType::Simple, text(migration).into_sql_str(), false)
    });
    let mut migrator = Migrator::with_migrations(migrations.collect());
    migrator.dangerous_set_table_name(TABLE);
    migrator.set_locking(false);
    migrator
}

fn refused(error: MigrateError) -> Error {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => DatabaseFailure::from(error).error,
        MigrateError::VersionMissing(version) => Error::Schema(format!(
            "the tables are at version {version}, which is newer than this program; use the newer one"
        )),
        MigrateError::VersionMismatch(version) => Error::Schema(format!(
            "migration {version} of the tables is not the released one: they were made by an unreleased program"
        )),
        other => Error::Schema(other.to_string()),
    }
}
