//! Five nodes, one Redis, sixty-four callers, rules of every kind, and random faults one after the other.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use tollgate_core::Clock;
use tollgate_store::MonotonicClock;
use tollgate_testkit::checker::HeldSlot;

use super::processes::expect_slots;
use crate::fault_proxy::{Direction, FaultProxy, LinkMode};
use crate::faults::rules::{EXACT, SHARED, SLOTS};
use crate::faults::{Caller, Lab, LoadProfile, LoadRequest, RowResult};
use crate::patience;
use crate::redis::RedisServer;

const NODES: u64 = 5;
const CALLERS: usize = 60;
/// Callers that hold slots.
const HOLDERS: usize = 4;
/// Environment variable with the seed of a run, to repeat it.
const SEED: &str = "TOLLGATE_FAULTS_SEED";

/// For CI.
pub fn shortly(lab: Lab) -> RowResult {
    storm(lab, 10)
}

/// For a minute.
pub fn a_minute(lab: Lab) -> RowResult {
    storm(lab, 60)
}

fn storm(mut lab: Lab, seconds: u64) -> RowResult {
    let given = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| RandomState::new().hash_one(0));
    lab.remark(format!("{SEED}={seed}"));
    let server = RedisServer::start();
    let proxy = FaultProxy::start(server.port());
    lab.use_rules(&[EXACT, SHARED, &[SLOTS]].concat());
    lab.fleet(&proxy.url(), NODES);
    let names: Vec<&str> = EXACT.iter().chain(SHARED).map(|rule| rule.name).collect();
    let load = lab.load_as(&LoadProfile {
        callers: CALLERS,
        pace: Duration::from_millis(15),
        script: Arc::new(move |caller, turn| {
            LoadRequest::new(names[(caller + turn as usize) % names.len()], &format!("k{}", caller % 5))
        }),
    });
    let holders = Holders::start(&lab);
    lab.pause(1000);
    let mut storm = Storm { lot: seed | 1, server, proxy, forgotten: 0, counts: Default::default() };
    let end = lab.now() + seconds * 1_000_000_000;
    while lab.now() < end {
        storm.strike(&mut lab);
        let calm = 300 + storm.draw(900);
        lab.pause(calm);
    }
    lab.expect_return();
    lab.pause(1000);
    lab.stop(load);
    let held = holders.stop();
    // The limit in the store, each node's share, and the limit again for every loss of the store.
    let most = 5 + NODES as usize + 5 * storm.forgotten;
    expect_slots(&mut lab, &held, most);
    lab.remark(format!("{:?}", storm.counts));
    lab.expect_alive();
    lab.expect_ttls(&[storm.server.port()]);
    lab.conclude()
}

/// Injects random faults, one at a time.
struct Storm {
    lot: u64,
    server: RedisServer,
    proxy: FaultProxy,
    /// How often the store lost its data.
    forgotten: usize,
    counts: std::collections::BTreeMap<&'static str, u32>,
}

impl Storm {
    /// A number below `bound`, by xorshift: the seed determines the whole run.
    fn draw(&mut self, bound: u64) -> u64 {
        self.lot ^= self.lot << 13;
        self.lot ^= self.lot >> 7;
        self.lot ^= self.lot << 17;
        self.lot % bound
    }

    /// Injects a fault for a while.
    fn strike(&mut self, lab: &mut Lab) {
        let (what, span) = (self.draw(10), 200 + self.draw(1000));
        let late = Duration::from_millis(1 + self.draw(80));
        let name = match what {
            0 => self.network(lab, "delay", LinkMode::Delay(late), span),
            1 => self.network(lab, "jitter", LinkMode::Jitter(late * 3), span),
            2 => self.network(lab, "drop", LinkMode::Drop, span),
            3 => self.network(lab, "reset", LinkMode::Reset, span),
            4 => self.network(lab, "trickle", LinkMode::Trickle(20), span),
            5 => {
                self.proxy.refuse();
                lab.pause(span);
                self.proxy.admit();
                "refuse"
            }
            6 => {
                self.server.stop();
                lab.pause(span);
                self.server.cont();
                "halt"
            }
            7 => {
                self.server.client().succeed(&["SCRIPT", "FLUSH"]);
                "script flush"
            }
            8 => self.forget(lab, |storm| drop(storm.server.client().succeed(&["FLUSHALL"])), "flush all"),
            _ => self.forget(lab, |storm| storm.server.restart(), "restart"),
        };
        *self.counts.entry(name).or_default() += 1;
    }

    fn network(&mut self, lab: &Lab, name: &'static str, mode: LinkMode, span: u64) -> &'static str {
        let direction = if self.draw(2) == 0 { Direction::Requests } else { Direction::Replies };
        self.proxy.set_only(direction, mode);
        lab.pause(span);
        self.proxy.set(LinkMode::Pass);
        name
    }

    fn forget(&mut self, lab: &mut Lab, how: impl FnOnce(&mut Storm), name: &'static str) -> &'static str {
        let from = lab.now();
        how(self);
        let to = lab.now();
        lab.lost(from, to);
        self.forgotten += 1;
        name
    }
}

/// Callers that acquire slots, hold them for a moment and release them.
struct Holders {
    threads: Vec<JoinHandle<Vec<HeldSlot>>>,
    is_over: Arc<AtomicBool>,
}

impl Holders {
    fn start(lab: &Lab) -> Holders {
        let is_over = Arc::new(AtomicBool::new(false));
        let threads = (0..HOLDERS).map(|number| {
            let (at, clock, is_over) = (lab.nodes[number].at, lab.clock, Arc::clone(&is_over));
            std::thread::spawn(move || hold_and_release(at, clock, &is_over))
        });
        Holders { threads: threads.collect(), is_over }
    }

    fn stop(self) -> Vec<HeldSlot> {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.into_iter().flat_map(|thread| thread.join().expect("a holder does not panic")).collect()
    }
}

/// Acquires several slots at a time, so that all callers together request more than there are.
fn hold_and_release(at: SocketAddr, clock: MonotonicClock, is_over: &AtomicBool) -> Vec<HeldSlot> {
    let mut caller = Caller::connect(at).expect("a node that runs");
    let mut all = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let mut held = Vec::new();
        for _ in 0..3 {
            let Ok(answer) = caller.post("/v1/slots/acquire", r#"{"client_key":"pool","endpoint":"/slots"}"#) else {
                return all;
            };
            if let Some(slot) = answer.get("slot").and_then(Value::as_str) {
                held.push((slot.to_owned(), clock.now().nanos()));
            }
        }
        patience::pause(Duration::from_millis(40));
        for (slot, from) in held {
            all.push(HeldSlot { from, to: clock.now().nanos() });
            let _ = caller.post("/v1/slots/release", &format!(r#"{{"slot":"{slot}"}}"#));
        }
    }
    all
}
