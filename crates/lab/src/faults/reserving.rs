//! A load of reservations, extensions and settlements, whose callers keep the books.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use tollgate_testkit::checker::UsageBounds;

use super::{Caller, Lab};
use crate::patience;

/// How long a caller waits after a call whose effect it does not know.
const OPEN_PAUSE: Duration = Duration::from_millis(20);
/// Keys of the callers.
pub const KEYS: u64 = 4;

/// How many reservations a row makes.
#[derive(Clone, Copy, Debug)]
pub struct ReservingSize {
    /// The budget of each key, in tokens.
    pub budget: u64,
    /// Reservations that are granted before the fault, and again after it; none if the row goes by time.
    pub each: Option<u64>,
    /// The least that a row must have granted to say anything.
    pub granted_min: u64,
}

impl ReservingSize {
    /// A few seconds.
    pub const SHORT: ReservingSize = ReservingSize { budget: 20_000, each: None, granted_min: 51 };
    /// Ten thousand, with the fault in the middle; they use nine tenths of the budget.
    pub const LONG: ReservingSize = ReservingSize { budget: 34_000, each: Some(5_000), granted_min: 10_000 };
}

/// Two quotas that every reservation charges alike, all or nothing, and a rule with slots.
const RULES: &str = "  - { name: budget, match: { endpoint: /metered }, meter: tokens, on_fail: deny, quota: { amount: BUDGET, every: month } }
  - { name: yearly, match: { endpoint: /metered }, meter: tokens, on_fail: deny, quota: { amount: 9000000, every: year } }
  - { name: slots, match: { endpoint: /slots }, on_fail: deny, limit: { algorithm: concurrency, slots: 5, slot_ttl: 2s } }
";

/// The rules, with the budget of this size.
pub fn reserving_rules(size: ReservingSize) -> String {
    RULES.replace("BUDGET", &size.budget.to_string())
}

/// What callers know of one key.
#[derive(Clone, Debug, Default)]
pub struct KeyLedger {
    /// The usage that is possible after all answers.
    pub bounds: UsageBounds,
    /// Reservations that were granted.
    pub granted: u64,
    /// Reservations and steps that were denied by the store.
    pub denied: u64,
    /// Calls without an answer, or with one that leaves open whether the store was charged.
    pub open: u64,
}

/// Callers that reserve, extend and settle until they are stopped.
#[derive(Debug)]
pub struct ReservingLoad {
    stop: Arc<AtomicBool>,
    granted: Arc<AtomicU64>,
    callers: Vec<JoinHandle<BTreeMap<String, KeyLedger>>>,
}

impl ReservingLoad {
    /// Starts callers on all nodes.
    pub fn start(lab: &Lab, callers: u64) -> ReservingLoad {
        let nodes: Vec<SocketAddr> = lab.nodes.iter().map(|node| node.at).collect();
        let (stop, granted) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let caller = |number: u64| {
            let (nodes, stop, granted) = (nodes.clone(), stop.clone(), granted.clone());
            std::thread::spawn(move || {
                let (connection, ledgers) = (None, BTreeMap::new());
                let mut caller = ReservingCaller { nodes, turn: number, connection, ledgers, granted };
                while !stop.load(Ordering::Relaxed) {
                    caller.run_one();
                }
                caller.ledgers
            })
        };
        let callers = (0..callers).map(caller).collect();
        ReservingLoad { stop, granted, callers }
    }

    /// Reservations that were granted so far.
    pub fn granted(&self) -> u64 {
        self.granted.load(Ordering::Relaxed)
    }

    /// Stops the callers, and adds up what they know.
    pub fn stop(self) -> BTreeMap<String, KeyLedger> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all: BTreeMap<String, KeyLedger> = BTreeMap::new();
        for (key, own) in self.callers.into_iter().flat_map(|caller| caller.join().expect("a caller panicked")) {
            let sum = all.entry(key).or_default();
            sum.bounds.low += own.bounds.low;
            sum.bounds.high += own.bounds.high;
            sum.granted += own.granted;
            sum.denied += own.denied;
            sum.open += own.open;
        }
        all
    }
}

/// One caller, which has one request under way.
struct ReservingCaller {
    nodes: Vec<SocketAddr>,
    turn: u64,
    connection: Option<Caller>,
    ledgers: BTreeMap<String, KeyLedger>,
    /// Those of all callers.
    granted: Arc<AtomicU64>,
}

/// The answer to a charge.
enum ChargeAnswer {
    /// With the receipt.
    Granted(String),
    Denied,
    /// Nothing is known.
    Open,
}

impl ReservingCaller {
    /// Reserves, extends every third time, and settles at less, except every seventh reservation, which is left to its
    /// estimate.
    fn run_one(&mut self) {
        self.turn += 1;
        let turn = self.turn;
        let key = format!("k{}", turn % KEYS);
        let (estimate, step) = (10 + turn % 23, 1 + turn % 5);
        let ask = format!(r#"{{"client_key":"{key}","endpoint":"/metered","costs":{{"tokens":{estimate}}}}}"#);
        let Some(mut receipt) = self.charge(&key, "/v1/reserve", &ask, estimate) else { return };
        self.ledger(&key).granted += 1;
        self.granted.fetch_add(1, Ordering::Relaxed);
        let mut total = estimate;
        if turn.is_multiple_of(3) {
            let ask = format!(r#"{{"reservation":"{receipt}","costs":{{"tokens":{step}}}}}"#);
            match self.charge(&key, "/v1/extend", &ask, step) {
                Some(next) => (receipt, total) = (next, total + step),
                None => return, // denied, or the receipt may be void: the estimate stays
            }
        }
        if !turn.is_multiple_of(7) {
            self.settle(&key, &receipt, total, turn % (total + 1));
        }
    }

    /// Asks for units; returns the receipt if they were granted.
    fn charge(&mut self, key: &str, path: &str, ask: &str, units: u64) -> Option<String> {
        let charged = match self.post(path, ask) {
            None => ChargeAnswer::Open,
            Some(answer) => {
                let allowed = answer.get("allowed").and_then(Value::as_bool);
                let is_of_store = answer.get("mode").and_then(Value::as_str) == Some("store");
                let receipt = answer.get("reservation").and_then(Value::as_str);
                match (allowed, receipt) {
                    (Some(true), Some(receipt)) if is_of_store => ChargeAnswer::Granted(receipt.to_owned()),
                    (Some(false), _) if is_of_store => ChargeAnswer::Denied,
                    _ => ChargeAnswer::Open,
                }
            }
        };
        let ledger = self.ledger(key);
        match charged {
            ChargeAnswer::Granted(receipt) => {
                ledger.bounds.certain(i128::from(units));
                return Some(receipt);
            }
            ChargeAnswer::Denied => ledger.denied += 1,
            ChargeAnswer::Open => {
                ledger.bounds.possible(i128::from(units));
                ledger.open += 1;
                // While the store is away a node refuses at once, and a caller cannot tell whether it was asked.
                patience::pause(OPEN_PAUSE);
            }
        }
        None
    }

    fn settle(&mut self, key: &str, receipt: &str, total: u64, actual: u64) {
        let ask = format!(r#"{{"reservation":"{receipt}","costs":{{"tokens":{actual}}}}}"#);
        let answer = self.post("/v1/settle", &ask);
        let is_settled = answer.and_then(|answer| answer.get("settled").and_then(Value::as_bool)) == Some(true);
        let ledger = self.ledger(key);
        let back = i128::from(actual) - i128::from(total);
        match is_settled {
            true => ledger.bounds.certain(back),
            false => {
                ledger.bounds.possible(back);
                ledger.open += 1;
            }
        }
    }

    fn ledger(&mut self, key: &str) -> &mut KeyLedger {
        self.ledgers.entry(key.to_owned()).or_default()
    }

    /// Posts to a node; `None` without an answer. The next call goes to another node then.
    fn post(&mut self, path: &str, body: &str) -> Option<Value> {
        let node = self.nodes[self.turn as usize % self.nodes.len()];
        let answer = match &mut self.connection {
            Some(connection) => connection.post(path, body),
            None => Caller::connect(node).and_then(|connection| self.connection.insert(connection).post(path, body)),
        };
        if answer.is_err() {
            self.connection = None;
        }
        answer.ok()
    }
}
