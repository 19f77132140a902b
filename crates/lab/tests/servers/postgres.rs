//! The database server: shutdowns, stops, and what survives them.

use std::time::Duration;

use tollgate_lab::patience;
use tollgate_lab::postgres::{self, PostgresServer, Shutdown};

/// Whether the kernel keeps memory that this process made: a killed server leaves some behind.
fn has_memory(pid: u32) -> bool {
    let segments = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    segments.lines().any(|line| line.split_whitespace().nth(4) == Some(pid.to_string().as_str()))
}

#[test]
fn databases_of_the_shared_server_are_apart() {
    let (first, second) = (postgres::database(), postgres::database());
    assert_eq!(postgres::run_sql(&first, "CREATE TABLE a (b INT); INSERT INTO a VALUES (1), (2)"), "");
    assert_eq!(postgres::run_sql(&first, "SELECT b, 'x' FROM a ORDER BY b"), "1|x\n2|x");
    assert!(postgres::try_run_sql(&second, "SELECT b FROM a").unwrap_err().contains("does not exist"));
}

#[test]
fn what_is_committed_survives_every_end() {
    let mut server = PostgresServer::start();
    let port = server.port();
    server.run_sql("CREATE TABLE a (b INT)");
    let ends: [fn(&mut PostgresServer); 4] = [
        |server| server.shut_down(Shutdown::Fast),
        |server| server.shut_down(Shutdown::Immediate),
        PostgresServer::kill,
        |_| (), // a restart by itself
    ];
    for (count, end) in ends.into_iter().enumerate() {
        server.run_sql("INSERT INTO a VALUES (1)");
        end(&mut server);
        server.restart();
        assert_eq!((server.port(), server.run_sql("SELECT count(*) FROM a")), (port, (count + 1).to_string()));
    }
    server.kill();
    assert!(postgres::try_run_sql(&server.url(), "SELECT 1").unwrap_err().contains("refused"), "the port is closed");
}

#[test]
fn halts_with_its_children_and_goes_on() {
    let server = PostgresServer::start();
    let url = server.url();
    let query = std::thread::spawn(move || postgres::run_sql(&url, "SELECT pg_sleep(0.5), 'done'"));
    let running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%done%' AND pid <> pg_backend_pid()";
    patience::until("it runs", Duration::from_secs(10), || server.run_sql(running) == "1");
    server.stop();
    let finished = patience::try_until(Duration::from_millis(800), || query.is_finished());
    assert_eq!(finished, None, "an open connection does not answer either");
    server.cont();
    assert_eq!(query.join().unwrap(), "|done");
}

#[test]
fn connections_can_be_cut() {
    let server = PostgresServer::start_with(&["max_connections=10"]);
    assert_eq!(server.run_sql("SHOW max_connections"), "10");
    let url = server.url();
    let query = std::thread::spawn(move || postgres::try_run_sql(&url, "SELECT pg_sleep(60)"));
    patience::until("there is one to cut", Duration::from_secs(10), || server.terminate_backends() == 1);
    assert!(query.join().unwrap().unwrap_err().contains("terminating connection"));
    assert!(server.log().contains("terminating connection"));
}

#[test]
fn a_server_that_is_dropped_leaves_nothing_in_the_kernel() {
    let (server, halted, mut killed) = (PostgresServer::start(), PostgresServer::start(), PostgresServer::start());
    let (files, pids) = (server.data(), [server.pid(), halted.pid(), killed.pid()]);
    assert!(files.exists() && pids.into_iter().all(has_memory));
    halted.stop();
    killed.kill();
    drop((server, halted, killed));
    assert!(!files.exists() && !pids.into_iter().any(has_memory));
}
