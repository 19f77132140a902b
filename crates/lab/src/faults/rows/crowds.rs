//! Floods of new keys, and herds of clients that return at once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tollgate_core::Clock;
use tollgate_store::MonotonicClock;
use tollgate_testkit::LimitConfig;
use tollgate_testkit::checker::{AdmissionMode, ClientObservation, Keyed};

use crate::faults::rules::FaultRule;
use crate::faults::{Caller, Lab, LoadProfile, LoadRequest, RowResult};
use crate::patience;
use crate::redis::RedisServer;

const SECOND: u64 = 1_000_000_000;

/// F57, for CI.
pub fn flood_shortly(lab: Lab) -> RowResult {
    flood(lab, 4)
}

/// F57, for a minute.
pub fn flood_long(lab: Lab) -> RowResult {
    flood(lab, 60)
}

const HOURLY: FaultRule = FaultRule {
    name: "hourly",
    text: "limit: { requests: 20, window: 1h, algorithm: fixed_window }",
    limit: LimitConfig::FixedWindow { limit: 20, window: 3600 * SECOND, offset: 0 },
    keyed: Keyed::Caller,
    lease: 0,
};

/// Sends new keys as fast as possible to a store that is nearly full: keys above the limit share an overflow bucket, the
/// server never runs out of memory, and existing keys keep their count.
fn flood(mut lab: Lab, seconds: u64) -> RowResult {
    const NEW_PER_SECOND: u64 = 300;
    let server = RedisServer::start();
    server.client().succeed(&["SETRANGE", "ballast", "20000000", "x"]);
    let used = || server.client().fields(&["INFO", "memory"])["used_memory"].parse::<u64>().expect("a number of bytes");
    let most = used() * 100 / 88;
    server.client().succeed(&["CONFIG", "SET", "maxmemory", &most.to_string()]);
    lab.use_rules(&[HOURLY]);
    lab.use_long_timeouts();
    lab.add_arguments(&["--new-keys-per-second", &NEW_PER_SECOND.to_string()]);
    lab.fleet(&server.url(), 2);
    let spent = (0..25).filter(|_| is_allowed(&lab.ask(0, "hourly", "victim"))).count();
    lab.expect(spent == 20, || format!("the victim was admitted {spent} times of 20"));
    let (number, memory) = (Arc::new(AtomicU64::new(0)), lab.nodes[0].resident_kib());
    let load = lab.load_as(&LoadProfile {
        callers: 16,
        pace: Duration::ZERO,
        script: Arc::new(move |_, _| {
            LoadRequest::new("hourly", &format!("flood-{}", number.fetch_add(1, Ordering::Relaxed)))
        }),
    });
    lab.pause(seconds * 1000);
    let answered = load.answered();
    lab.stop(load);
    let (grown, keys) = (lab.nodes[0].resident_kib().saturating_sub(memory), server.client().number(&["DBSIZE"]));
    let again = is_allowed(&lab.ask(0, "hourly", "victim")) || is_allowed(&lab.ask(1, "hourly", "victim"));
    lab.expect(!again, || "the flood has reset the victim's limit".to_owned());
    lab.expect(grown < 64 << 10, || format!("memory grew by {grown} KiB"));
    let used = used();
    lab.expect(used < most, || format!("{used} bytes of the store are used, at most {most}"));
    let full: u64 =
        lab.nodes.iter().filter_map(|node| node.metric_by_label("tollgate_redis_errors", "error").remove("oom")).sum();
    lab.expect(full == 0, || format!("the store was out of memory {full} times"));
    let overflowed =
        lab.observations.iter().filter(|observation| observation.mode == Some(AdmissionMode::Overflow)).count();
    lab.expect(overflowed > 0, || "no request met an overflow bucket".to_owned());
    lab.expect_metric("tollgate_overflow", 1, Duration::from_secs(1));
    lab.remark(format!(
        "{answered} keys in {seconds} s, {keys} in the store, {}% of its memory used, {overflowed} overflowed, {grown} KiB more",
        used * 100 / most
    ));
    lab.expect_ttls(&[server.port()]);
    lab.conclude()
}

fn is_allowed(answer: &Value) -> bool {
    answer.get("allowed").and_then(Value::as_bool) == Some(true)
}

const WINDOW: u64 = 5 * SECOND;

const GATE: FaultRule = FaultRule {
    name: "gate",
    text: "key_by: global\n    limit: { requests: 2500, window: 5s, algorithm: fixed_window }",
    limit: LimitConfig::FixedWindow { limit: 2500, window: WINDOW, offset: 0 },
    keyed: Keyed::Everyone,
    lease: 0,
};

/// F59. Refused clients return when `Retry-After` says. They start at the beginning of a window: waits below two seconds
/// are not spread, and waits of a whole window make a herd.
pub fn herd(mut lab: Lab) -> RowResult {
    const CLIENTS: usize = 5000;
    const CALLERS: usize = 32;
    const SPREAD_SECONDS: u64 = 6;
    let server = RedisServer::start();
    lab.use_rules(&[GATE]);
    lab.add_arguments(&["--retry-jitter", &format!("{SPREAD_SECONDS}s")]);
    lab.fleet(&server.url(), 2);
    let before = lab.metric("tollgate_redis_breaker_openings");
    lab.pause((WINDOW - lab.now() % WINDOW) / 1_000_000 + 50);
    let threads: Vec<_> = (0..CALLERS)
        .map(|number| {
            let node = &lab.nodes[number % 2];
            let herd = Herd { node: node.name.clone(), at: node.at, number, clock: lab.clock };
            std::thread::spawn(move || herd.run(CLIENTS / CALLERS))
        })
        .collect();
    let observations: Vec<ClientObservation> =
        threads.into_iter().flat_map(|thread| thread.join().expect("a caller")).collect();
    let trips = lab.metric("tollgate_redis_breaker_openings") - before;
    lab.expect(trips == 0, || format!("breakers opened {trips} times"));
    let (peak, mean) = returns(&observations, SPREAD_SECONDS);
    lab.expect(mean > 0 && peak <= 3 * mean, || format!("peak {peak} per second, mean {mean}"));
    lab.remark(format!("{} tries, those who return: peak {peak} per second, mean {mean}", observations.len()));
    lab.observations.extend(observations);
    lab.conclude()
}

/// Clients that returned: the most in a second, and the mean over the time they are spread over. The mean over the time
/// they took would be as high as the peak if all came at once. First requests do not count.
fn returns(observations: &[ClientObservation], spread_seconds: u64) -> (u64, u64) {
    let mut seen = BTreeSet::new();
    let again: Vec<u64> = observations
        .iter()
        .filter(|observation| !seen.insert(&observation.key))
        .map(|observation| observation.asked)
        .collect();
    let first = again.iter().min().copied().unwrap_or(0);
    let mut per_second: BTreeMap<u64, u64> = BTreeMap::new();
    again.iter().for_each(|at| *per_second.entry((at - first) / SECOND).or_default() += 1);
    (per_second.values().max().copied().unwrap_or(0), again.len() as u64 / spread_seconds)
}

/// Many clients on one connection to one node.
struct Herd {
    node: String,
    at: SocketAddr,
    number: usize,
    clock: MonotonicClock,
}

impl Herd {
    /// Each client retries until admitted, after the wait that it is told.
    fn run(&self, clients: usize) -> Vec<ClientObservation> {
        let mut connection = Caller::connect(self.at).expect("a node that runs");
        let mut waiting: BTreeSet<(u64, usize)> = (0..clients).map(|client| (0, client)).collect();
        let (mut observations, start) = (Vec::new(), self.now());
        while let Some((due, client)) = waiting.pop_first().filter(|_| self.now() < start + 30 * SECOND) {
            patience::pause(Duration::from_nanos(due.saturating_sub(self.now())));
            let ask = LoadRequest::new(GATE.name, &format!("c{}-{client}", self.number));
            let (observation, answer) = connection.ask(&self.node, &ask, self.clock);
            if !observation.allowed {
                let seconds = answer.get("retry_after").and_then(Value::as_u64).unwrap_or(1);
                waiting.insert((self.now() + seconds * SECOND, client));
            }
            observations.push(observation);
        }
        observations
    }

    fn now(&self) -> u64 {
        self.clock.now().nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients that are refused at once, and return at these times.
    fn herd_returning(at: impl Fn(u64) -> u64) -> Vec<ClientObservation> {
        let observation = |client: u64, asked: u64| ClientObservation {
            rule: GATE.name.to_owned(),
            key: format!("c{client}"),
            node: String::new(),
            mode: Some(AdmissionMode::Store),
            allowed: false,
            cost: 1,
            asked,
            heard: asked,
        };
        (0..600).flat_map(|client| [observation(client, 0), observation(client, at(client))]).collect()
    }

    #[test]
    fn a_herd_that_returns_at_once_is_told_from_one_that_is_spread() {
        assert_eq!(returns(&herd_returning(|_| 5 * SECOND), 6), (600, 100), "six times the mean");
        assert_eq!(returns(&herd_returning(|client| (5 + client % 6) * SECOND), 6), (100, 100));
    }
}
