//! Lost data, lost scripts, and data that is still loading.

use std::time::Duration;

use tollgate_testkit::checker::AdmissionMode;

use crate::faults::{Lab, RowResult};
use crate::redis::RedisServer;

/// F21.
pub fn flushed(mut lab: Lab) -> RowResult {
    let server = RedisServer::start();
    lab.fleet(&server.url(), 2);
    let load = lab.load(8);
    lab.pause(700);
    for round in 1..=2 {
        let from = lab.now();
        server.client().succeed(&["FLUSHALL"]);
        let to = lab.now();
        lab.lost(from, to);
        lab.expect_metric("tollgate_store_epoch_changes", round, Duration::from_millis(1500));
        lab.pause(1200);
    }
    lab.stop(load);
    lab.expect_alive();
    lab.expect_ttls(&[server.port()]);
    lab.conclude()
}

/// F22.
pub fn scripts_flushed(mut lab: Lab) -> RowResult {
    const FLUSHES: u64 = 20;
    let server = RedisServer::start();
    lab.use_long_timeouts();
    lab.fleet(&server.url(), 2);
    let load = lab.load(8);
    lab.pause(700);
    let mut client = server.client();
    let (from, before) = (lab.now(), evals(&server));
    for _ in 0..FLUSHES {
        client.succeed(&["SCRIPT", "FLUSH"]);
        lab.pause(100);
    }
    let (to, evals) = (lab.now(), evals(&server) - before);
    lab.stop(load);
    let other = lab.between(from, to).filter(|observation| observation.mode != Some(AdmissionMode::Store)).count();
    lab.expect(other == 0, || format!("{other} decisions without the store"));
    // Two scripts; each connection of a node may find them missing.
    let most = FLUSHES * 2 * lab.nodes.len() as u64 * 2;
    lab.expect(evals <= most, || format!("{evals} EVALs after {FLUSHES} flushes, at most {most}"));
    lab.remark(format!("{evals} EVALs after {FLUSHES} flushes"));
    lab.expect_answers(from, to);
    lab.expect_alive();
    lab.expect_ttls(&[server.port()]);
    lab.conclude()
}

/// How often the text of a script was sent instead of its hash.
fn evals(server: &RedisServer) -> u64 {
    let statistics = server.client().fields(&["INFO", "commandstats"]);
    let line = statistics.get("cmdstat_eval").map(String::as_str).unwrap_or_default();
    let calls = line.split(',').find_map(|part| part.strip_prefix("calls="));
    calls.and_then(|calls| calls.parse().ok()).unwrap_or(0)
}

/// F28. A delay per key simulates a gigabyte of data.
pub fn loading(mut lab: Lab) -> RowResult {
    const KEYS: usize = 3000;
    let mut server = RedisServer::start();
    let mut client = server.client();
    for key in 0..KEYS {
        client.succeed(&["SET", &format!("ballast-{key}"), &"x".repeat(1000)]);
    }
    lab.fleet(&server.url(), 2);
    let load = lab.load(8);
    lab.pause(700);
    client.succeed(&["SAVE"]);
    let from = lab.now();
    let slowly = ["--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"];
    server.restart_with(&slowly);
    lab.pause(500);
    let reply = server.client().call(&["GET", "ballast-1"]);
    lab.expect(reply.error_word() == Some(b"LOADING"), || format!("the server is not loading: {reply:?}"));
    lab.pause(1500);
    let to = lab.now();
    lab.expect_return();
    let back = lab.now();
    lab.lost(from, back);
    lab.pause(700);
    lab.stop(load);
    lab.expect_outage(from, to);
    lab.expect_alive();
    lab.expect_ttls(&[server.port()]);
    lab.conclude()
}
