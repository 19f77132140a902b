//! Migrations run once, also with several nodes at once.

use sqlx::migrate::{Migrate, Migration, MigrationType, Migrator};
use sqlx::{Connection, PgConnection, SqlSafeStr, SqliteConnection};
use tollgate_control::{Control, DatabaseUrl, Error, Page, Schema, ViolationFilter};
use tollgate_lab::postgres;

use crate::databases::{author, on_both};

on_both! {
    async fn tables_are_made_once_by_many_at_once(db: Database) {
        assert_eq!(db.control.schema().await.unwrap(), Schema::Current);
        assert_eq!(db.control.migrate().await.unwrap(), 0);
        db.run("INSERT INTO tollgate_migrations (version, description, success, checksum, execution_time) \
                SELECT 99, 'of the future', success, checksum, 0 FROM tollgate_migrations WHERE version = 1").await;
        assert_eq!(db.control.schema().await.unwrap(), Schema::Ahead);
        assert!(matches!(db.control.migrate().await, Err(Error::Schema(_))));
        db.run("DELETE FROM tollgate_migrations WHERE version = 99").await;
        assert_eq!(db.control.migrate().await.unwrap(), 0);
    }
}

async fn race(place: DatabaseUrl) {
    let nodes: Vec<Control> = (0..8).map(|_| Control::new(&place).unwrap()).collect();
    assert!(matches!(nodes[0].schema().await.unwrap(), Schema::Behind(0, _)));
    assert!(matches!(nodes[0].refresh(&author()).await, Err(Error::Schema(_))));
    let migrating = nodes.into_iter().map(|node| tokio::spawn(async move { node.migrate().await.unwrap() }));
    let mut steps = 0;
    for one in migrating.collect::<Vec<_>>() {
        steps += one.await.unwrap();
    }
    assert_eq!(steps, 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_nodes_make_the_tables_of_sqlite_once() {
    let files = tempfile::tempdir().unwrap();
    race(DatabaseUrl::Sqlite(files.path().join("t.db"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_nodes_make_the_tables_of_postgres_once() {
    let url = tokio::task::spawn_blocking(postgres::database).await.unwrap();
    race(DatabaseUrl::Postgres(url)).await;
}

/// Creates the tables of the first version.
async fn first_version<C: Migrate>(text: &'static str, connection: &mut C) {
    let first = Migration::new(1, "tables".into(), MigrationType::Simple, text.into_sql_str(), false);
    let mut migrator = Migrator::with_migrations(vec![first]);
    migrator.dangerous_set_table_name("tollgate_migrations");
    migrator.set_locking(false);
    connection.ensure_migrations_table("tollgate_migrations").await.unwrap();
    migrator.run_direct(None, connection, false).await.unwrap();
}

/// Rows of the first version, one of them invalid.
const OLD: &str = "INSERT INTO rate_limit_rules (rule_id, name, algorithm, max_requests, window_secs, version) \
                   VALUES ('7', '7', 'gcra', 5, 1, 3), ('free tier', 'Für alle', 'gcra', 5, 1, 3), ('bad', 'bad', 'tocken_bucket', -1, 1, 0); \
                   INSERT INTO rate_limit_overrides (override_id, client_key, rule_id, max_requests, valid_until) \
                   VALUES ('o', 'user:1', '7', 9, '2027-01-01T00:00:00.000000Z'); \
                   INSERT INTO clients (client_key, tier) VALUES ('user:1', 'gold'); \
                   INSERT INTO rate_limit_violations (client_key, endpoint, rule_id, violated_at, request_count, limit_value) \
                   VALUES ('user:1', '/x', '7', '2026-01-01T00:00:00.000000Z', 12, 5)";

async fn upgrades(place: DatabaseUrl) {
    let control = Control::open(&place).await.unwrap();
    assert_eq!(control.schema().await.unwrap(), Schema::Behind(1, 11));
    assert_eq!(control.migrate().await.unwrap(), 10);
    assert_eq!(control.schema().await.unwrap(), Schema::Current);
    let rule = control.rule("default", "7").await.unwrap();
    assert_eq!((rule.version, &rule.draft.document["limit"]["requests"]), (3, &5.into()));
    assert_eq!(control.overriding("default", "o").await.unwrap().draft.max_requests, Some(9));
    assert_eq!(control.client("default", "user:1").await.unwrap().draft.tier.as_deref(), Some("gold"));
    let violations = control.violations(&ViolationFilter::default(), &Page::default()).await.unwrap().entries;
    let violation = &violations[0].violation;
    assert_eq!((violation.refused, violation.request_count, violation.limit_value), (12, 6, 5));
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    let put = |row: Result<tollgate_control::record::RuleRecord, tollgate_control::Quarantined>| match row {
        Ok(rule) => good.push(rule.rule_id),
        Err(row) => bad.push(row.id),
    };
    control.snapshot().await.unwrap().rules(None, put).await.unwrap();
    assert_eq!(bad, ["bad"], "it stays, and is left out as before");
    assert_eq!(good, ["7", "free tier"], "names from before their form was asked for stay in force");
    assert!(!control.record_sql_edits().await.unwrap());
    assert_eq!(control.state().await.unwrap().generation, 0, "to upgrade is no edit");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_the_first_version_is_upgraded_by_sqlite() {
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("t.db");
    let mut connection = SqliteConnection::connect(&format!("sqlite:{}?mode=rwc", file.display())).await.unwrap();
    first_version(include_str!("../../migrations/sqlite/0001_tables.sql"), &mut connection).await;
    sqlx::raw_sql(OLD).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    upgrades(DatabaseUrl::Sqlite(file)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_the_first_version_is_upgraded_by_postgres() {
    let url = tokio::task::spawn_blocking(postgres::database).await.unwrap();
    let mut connection = PgConnection::connect(&url).await.unwrap();
    first_version(include_str!("../../migrations/postgres/0001_tables.sql"), &mut connection).await;
    sqlx::raw_sql(OLD).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    upgrades(DatabaseUrl::Postgres(url)).await;
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let files = tempfile::tempdir().unwrap();
    let control = Control::open(&DatabaseUrl::Sqlite(files.path().join("t.db"))).await.unwrap();
    control.migrate().await.unwrap();
    for file in std::fs::read_dir(files.path()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.file_name());
    }
}

#[tokio::test]
async fn a_missing_database_is_unavailable() {
    let nowhere = DatabaseUrl::Postgres("postgres://me:s3cret@127.0.0.1:1/none".to_owned());
    let Err(Error::Unavailable(why)) = Control::open(&nowhere).await else { panic!("it answered") };
    assert!(!why.contains("s3cret"));
    let nowhere = DatabaseUrl::Sqlite("/no/such/directory/t.db".into());
    assert!(matches!(Control::open(&nowhere).await, Err(Error::Unavailable(_))));
}
