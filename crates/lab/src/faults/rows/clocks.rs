//! Clocks that step, and clocks that differ.

use std::time::Duration;

use tollgate_testkit::checker::{self, AdmissionMode};

use crate::faults::{Lab, RowResult, STORE_PATIENCE};
use crate::redis::{RedisCluster, RedisOptions, RedisServer};
use crate::wall_clock::WallClock;

const DAY: i64 = 86_400;
const MILLI: u64 = 1_000_000;

/// F33.
pub fn back(lab: Lab) -> RowResult {
    stepped(lab, &[-3600, -2 * DAY])
}

/// F34.
pub fn ahead(lab: Lab) -> RowResult {
    stepped(lab, &[3600, 80 * 365 * DAY])
}

/// Steps the store's clock under load. Its time then repeats, so only what callers observed is checked; every step may
/// cost one more limit (P20).
fn stepped(mut lab: Lab, steps: &[i64]) -> RowResult {
    let server = RedisOptions { own_clock: true, ..RedisOptions::default() }.start();
    lab.fleet(&server.url(), 2);
    for (round, step) in steps.iter().enumerate() {
        let load = lab.load(8);
        lab.pause(700);
        let from = lab.now();
        server.step_clock(*step);
        let to = lab.now();
        lab.lost(from, to);
        lab.expect_metric("tollgate_store_clock_steps", round as u64 + 1, Duration::from_millis(2000));
        lab.expect_return();
        lab.pause(700);
        lab.stop(load);
        // No key is locked for longer than P20 allows, and the hints are true.
        lab.expect_unlocked();
        lab.expect_truthful_hints();
    }
    // The logs cannot be checked by a clock that stepped.
    lab.store_time_is_one = false;
    lab.conclude()
}

/// F35.
pub fn apart(mut lab: Lab) -> RowResult {
    let mut cluster = RedisCluster::start_as(&RedisOptions { own_clock: true, ..RedisOptions::default() });
    let owner = cluster.primary_of(0);
    cluster.nodes[owner].step_clock(5);
    let load = super::cluster::begin(&mut lab, &cluster);
    let from = lab.now();
    cluster.nodes[owner].kill();
    cluster.wait_for_failover(0, owner);
    lab.expect_return();
    let to = lab.now();
    lab.lost(from, to);
    lab.pause(1000);
    lab.stop(load);
    lab.expect_timely(from, to);
    lab.expect_unlocked();
    lab.store_time_is_one = false;
    lab.conclude()
}

/// F36. The wall clock of one node is a day ahead, then a day behind. Both nodes decide by the store's time.
pub fn of_nodes(mut lab: Lab) -> RowResult {
    let server = RedisServer::start();
    let wall = WallClock::new(lab.directory());
    wall.set(DAY);
    lab.use_long_timeouts();
    lab.add_arguments(&["--nodes", "2"]);
    lab.start_node("n1", &server.url());
    lab.start_node_at("n2", &server.url(), crate::ports::free(), Some(&wall));
    lab.wait_for_store(STORE_PATIENCE);
    let from = lab.now();
    let load = lab.load(8);
    lab.pause(1000);
    wall.set(-DAY);
    lab.pause(1000);
    lab.stop(load);
    let to = lab.now();
    let other = lab.observations.iter().filter(|observation| observation.mode != Some(AdmissionMode::Store)).count();
    lab.expect(other == 0, || format!("{other} decisions without the store"));
    lab.expect_answers(from, to);
    lab.expect_truthful_hints();
    for node in &mut lab.nodes {
        node.end();
    }
    let logs: Vec<_> = lab.nodes.iter().filter_map(|node| checker::read(&node.log).ok()).collect();
    let (first, last) = (from - 5000 * MILLI, lab.now() + 1000 * MILLI);
    let strange = logs.iter().flatten().filter(|entry| !(first..=last).contains(&entry.time_ns)).count();
    lab.expect(strange == 0, || format!("{strange} decisions at a time that is not the store's"));
    lab.expect(logs.iter().all(|log| log.len() > 100), || "a node has logged almost nothing".to_owned());
    lab.conclude()
}
