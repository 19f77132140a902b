//! The tables are made once, whoever asks and however often.

use tollgate_control::{Control, Error, Place, Schema};
use tollgate_testkit::postgres;

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

async fn race(place: Place) {
    let nodes: Vec<Control> = (0..8).map(|_| Control::new(&place).unwrap()).collect();
    assert!(matches!(nodes[0].schema().await.unwrap(), Schema::Behind(0, _)));
    assert!(matches!(nodes[0].refresh(&author()).await, Err(Error::Schema(_))));
    let migrating = nodes.into_iter().map(|node| tokio::spawn(async move { node.migrate().await.unwrap() }));
    let mut steps = 0;
    for one in migrating.collect::<Vec<_>>() {
        steps += one.await.unwrap();
    }
    assert_eq!(steps, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_nodes_make_the_tables_of_sqlite_once() {
    let files = tempfile::tempdir().unwrap();
    race(Place::Sqlite(files.path().join("t.db"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_nodes_make_the_tables_of_postgres_once() {
    let url = tokio::task::spawn_blocking(postgres::database).await.unwrap();
    race(Place::Postgres(url)).await;
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let files = tempfile::tempdir().unwrap();
    let control = Control::open(&Place::Sqlite(files.path().join("t.db"))).await.unwrap();
    control.migrate().await.unwrap();
    for file in std::fs::read_dir(files.path()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.file_name());
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_is_away() {
    let nowhere = Place::Postgres("postgres://me:s3cret@127.0.0.1:1/none".to_owned());
    let Err(Error::Away(why)) = Control::open(&nowhere).await else { panic!("it answered") };
    assert!(!why.contains("s3cret"));
    let nowhere = Place::Sqlite("/no/such/directory/t.db".into());
    assert!(matches!(Control::open(&nowhere).await, Err(Error::Away(_))));
}
