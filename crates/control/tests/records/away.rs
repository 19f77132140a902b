//! A database that is unavailable, and returns.

use std::time::Duration;

use tollgate_control::{Control, DatabaseUrl, Error, Precondition};
use tollgate_lab::patience::{Watch, promised};
use tollgate_lab::postgres::{PostgresServer, Shutdown};

use crate::databases::author;
use crate::drafts::{NAMESPACE, apply, change_set, client, client_draft, per_second, rule};

async fn start() -> (PostgresServer, DatabaseUrl, Control) {
    let server = tokio::task::spawn_blocking(PostgresServer::start).await.unwrap();
    let place = DatabaseUrl::Postgres(server.database());
    let control = Control::open(&place).await.unwrap();
    control.migrate().await.unwrap();
    (server, place, control)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_unavailable_in_time_and_returns() {
    let (server, _, control) = start().await;
    apply(&control, [rule("a", per_second(1), Precondition::Absent)]).await;
    server.stop();
    let watch = Watch::start();
    let (change, refresh) = (change_set([rule("a", per_second(2), Precondition::Present)]), author());
    let (read, written, refreshed) =
        tokio::join!(control.rule(NAMESPACE, "a"), control.apply(&change), control.refresh(&refresh));
    let took = watch.elapsed();
    assert!(matches!(read, Err(Error::Unavailable(_))), "{read:?}");
    assert!(matches!(written, Err(Error::Unavailable(_))), "{written:?}");
    assert!(matches!(refreshed, Err(Error::Unavailable(_))), "{refreshed:?}");
    assert!(took < Duration::from_secs(8), "it took {took:?}");
    server.cont();
    apply(&control, [rule("b", per_second(1), Precondition::Absent)]).await;
    let verified = control.verify_audit().await.unwrap();
    assert_eq!(verified.broken_at, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_keeps_what_it_acknowledged() {
    let (mut server, _, control) = start().await;
    for n in 0..20 {
        apply(&control, [rule("a", per_second(1 + n), Precondition::Anything)]).await;
    }
    server.kill();
    assert!(matches!(control.rule(NAMESPACE, "a").await, Err(Error::Unavailable(_))));
    server.restart();
    let record = control.rule(NAMESPACE, "a").await.unwrap();
    assert_eq!((record.version, &record.draft.document["limit"]["requests"]), (20, &serde_json::json!(20)));
    assert_eq!(control.verify_audit().await.unwrap().rows, 20);
    server.shut_down(Shutdown::Fast);
    server.restart();
    assert_eq!(apply(&control, [rule("a", None, Precondition::Version(20))]).await.generation, 21);
}

/// Two nodes on one PostgreSQL serve a new rule within two seconds, also after the listener's connection was cut.
#[tokio::test(flavor = "multi_thread")]
async fn a_listener_whose_connection_was_cut_reconnects() {
    let (server, place, control) = start().await;
    let elsewhere = Control::new(&place).unwrap();
    let mut listener = elsewhere.listener();
    let heard = async |listener: &mut tollgate_control::GenerationListener| {
        promised("a notification", Duration::from_secs(2), listener.changed()).await;
    };
    heard(&mut listener).await;
    for n in 0..3 {
        assert!(server.terminate_backends() > 0);
        heard(&mut listener).await;
        apply(&control, [client("user:1", client_draft(&n.to_string()))]).await;
        heard(&mut listener).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_locked_by_another_process_is_unavailable_in_time() {
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("t.db");
    let control = Control::open(&DatabaseUrl::Sqlite(path.clone())).await.unwrap();
    control.migrate().await.unwrap();
    apply(&control, [rule("a", per_second(1), Precondition::Absent)]).await;
    let mut other = <sqlx::SqliteConnection as sqlx::Connection>::connect(path.to_str().unwrap()).await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let watch = Watch::start();
    let written = control.apply(&change_set([rule("a", per_second(2), Precondition::Present)])).await;
    assert!(matches!(written, Err(Error::Unavailable(_))), "{written:?}");
    assert!(watch.elapsed() < Duration::from_secs(4));
    assert_eq!(control.rule(NAMESPACE, "a").await.unwrap().version, 1, "readers wait for no writer");
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    apply(&control, [rule("a", per_second(2), Precondition::Present)]).await;
}
