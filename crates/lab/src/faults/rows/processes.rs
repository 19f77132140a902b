//! Processes that end, stop and return: Redis and nodes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tollgate_testkit::checker::{AdmissionMode, ClientObservation, HeldSlot, inflight};

use crate::faults::rules::{EXACT, SHARED, SLOTS, TALLY};
use crate::faults::{Caller, Lab, LoadProfile, LoadRequest, RowResult};
use crate::patience;
use crate::redis::RedisServer;

/// F1.
pub fn redis_kill(mut lab: Lab) -> RowResult {
    let mut server = RedisServer::start();
    lab.fleet(&server.url(), 2);
    let load = lab.load(8);
    lab.pause(700);
    let (memory, from) = (lab.nodes[0].resident_kib(), lab.now());
    server.kill();
    lab.pause(2500);
    let (to, grown) = (lab.now(), lab.nodes[0].resident_kib().saturating_sub(memory));
    lab.stop(load);
    lab.expect(grown < 32 << 10, || format!("memory grew by {grown} KiB"));
    lab.expect_outage(from, to);
    let ready = lab.nodes[0].is_ready();
    lab.expect(ready, || "not ready without a store".to_owned());
    lab.expect_alive();
    lab.conclude()
}

/// F2.
pub fn redis_back_empty(mut lab: Lab) -> RowResult {
    let mut server = RedisServer::start();
    lab.fleet(&server.url(), 2);
    let load = lab.load(8);
    lab.pause(700);
    let from = lab.now();
    server.kill();
    lab.pause(1000);
    server.restart();
    let back = lab.now();
    lab.lost(from, back);
    lab.expect_return();
    lab.expect_metric("tollgate_store_epoch_changes", 1, Duration::from_millis(1500));
    lab.pause(1500);
    lab.stop(load);
    lab.expect_timely(from, back);
    lab.expect_alive();
    lab.expect_ttls(&[server.port()]);
    lab.conclude()
}

/// F3, for CI.
pub fn redis_halted_shortly(lab: Lab) -> RowResult {
    redis_halted(lab, 3000)
}

/// F3, in full length.
pub fn redis_halted_long(lab: Lab) -> RowResult {
    redis_halted(lab, 30_000)
}

fn redis_halted(mut lab: Lab, millis: u64) -> RowResult {
    let server = RedisServer::start();
    lab.use_rules(&[EXACT, &[TALLY]].concat());
    lab.fleet(&server.url(), 2);
    let load = lab.load(8);
    lab.pause(700);
    lab.stop(load);
    let from = lab.now();
    server.stop();
    let sent = send_without_answer(&mut lab, "ghost");
    lab.remark(format!("{sent} requests were on their way when nothing answered"));
    let load = lab.load(8);
    lab.pause(millis);
    let to = lab.now();
    server.cont();
    lab.expect_return();
    let charged = charged(&mut lab, "ghost");
    lab.expect(charged == 0, || format!("E10: {charged} ghost charges after SIGCONT"));
    lab.pause(500);
    lab.stop(load);
    lab.expect_outage(from, to);
    lab.expect_alive();
    lab.expect_ttls(&[server.port()]);
    lab.conclude()
}

/// Sends requests for a key from many callers while the store does not answer, and returns how many waited for it: the
/// breaker rejects later ones, which prove nothing.
pub(super) fn send_without_answer(lab: &mut Lab, key: &'static str) -> usize {
    let (callers, pace) = (16, Duration::from_millis(1));
    let load =
        lab.load_as(&LoadProfile { callers, pace, script: Arc::new(move |_, _| LoadRequest::new("tally", key)) });
    lab.pause(200);
    lab.stop(load);
    let waited =
        |observation: &&ClientObservation| observation.key == key && observation.heard - observation.asked > 20_000_000;
    let sent = lab.observations.iter().filter(waited).count();
    lab.expect(sent >= 5, || format!("only {sent} requests were sent to a store that says nothing"));
    sent
}

/// What the store has recorded for a key under the rule `tally`.
pub(super) fn charged(lab: &mut Lab, key: &str) -> u64 {
    let ask = LoadRequest { cost: 0, ..LoadRequest::new("tally", key) };
    let mut charged = None;
    patience::try_until(Duration::from_secs(3), || {
        let answer = lab.ask_for(0, &ask);
        let figure = |name: &str| answer.get(name).and_then(Value::as_u64);
        let is_of_store = answer.get("mode").and_then(Value::as_str) == Some("store");
        charged = figure("limit").zip(figure("remaining")).filter(|_| is_of_store);
        charged.is_some()
    });
    lab.expect(charged.is_some(), || "the store does not say what was charged".to_owned());
    charged.map_or(0, |(limit, remaining)| limit - remaining)
}

/// F12.
pub fn node_killed(mut lab: Lab) -> RowResult {
    let server = RedisServer::start();
    lab.use_rules(&[&[SLOTS][..], SHARED].concat());
    lab.add_arguments(&["--lease-ttl", "1s"]);
    lab.promises.clear();
    lab.fleet(&server.url(), 2);
    let names: Vec<&str> = SHARED.iter().map(|rule| rule.name).collect();
    let load = lab.load_as(&LoadProfile {
        callers: 8,
        pace: Duration::from_millis(1),
        script: Arc::new(move |caller, turn| {
            LoadRequest::new(names[turn as usize % names.len()], &format!("k{}", caller % 3))
        }),
    });
    lab.pause(700);
    let mut holder = Caller::connect(lab.nodes[0].at).expect("a node that runs");
    let held = (0..7).filter(|_| hold(&mut holder)).count();
    lab.expect(held == 5, || format!("{held} slots of 5 were held"));
    lab.nodes[0].kill();
    lab.unlist(0);
    let mut other = Caller::connect(lab.nodes[1].at).expect("a node that runs");
    let early = hold(&mut other);
    lab.expect(!early, || "a slot of a node that was killed was free at once".to_owned());
    let took = patience::try_until(Duration::from_secs(5), || hold(&mut other));
    let most = Duration::from_millis(3000);
    lab.expect(took.is_some_and(|took| took < most), || format!("slots came back after {took:?}"));
    lab.remark(format!("slots back after {} ms of 2000", took.unwrap_or_default().as_millis()));
    lab.pause(500);
    lab.stop(load);
    lab.expect_ttls(&[server.port()]);
    lab.conclude()
}

/// Takes a slot of the rule `slots`.
pub(super) fn hold(caller: &mut Caller) -> bool {
    let answer = caller.post("/v1/slots/acquire", r#"{"client_key":"holder","endpoint":"/slots"}"#);
    answer.is_ok_and(|answer| answer.get("allowed").and_then(Value::as_bool) == Some(true))
}

/// F60.
pub fn rolling(mut lab: Lab) -> RowResult {
    let server = RedisServer::start();
    lab.use_rules(&[EXACT, SHARED].concat());
    lab.use_long_timeouts();
    lab.fleet(&server.url(), 2);
    let load = lab.load(8);
    lab.pause(700);
    for turn in 2..5 {
        for place in [0, 1] {
            let old = lab.nodes.len() - 2;
            let port = lab.nodes[old].at.port();
            lab.unlist(old);
            let well = lab.nodes[old].end();
            lab.expect(well, || "a node did not shut down cleanly".to_owned());
            lab.start_node_at(&format!("n{}-{turn}", place + 1), &server.url(), port, None);
            lab.pause(300);
        }
    }
    lab.stop(load);
    let fallen = lab.observations.iter().filter(|observation| observation.mode == Some(AdmissionMode::Fallback));
    let fallen: BTreeSet<&str> = fallen.map(|observation| observation.node.as_str()).collect();
    if !fallen.is_empty() {
        lab.broken.push(format!("decisions without the store, which was there all the time, by {fallen:?}"));
    }
    lab.expect_alive();
    lab.expect_ttls(&[server.port()]);
    lab.conclude()
}

/// Checks how many slots callers certainly held at once.
pub(super) fn expect_slots(lab: &mut Lab, held: &[HeldSlot], most: usize) {
    let found = inflight(held);
    lab.expect(found <= most, || format!("P11: {found} slots held at once, at most {most}"));
    lab.remark(format!("{} slots taken, at most {found} at once", held.len()));
}
