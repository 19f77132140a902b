//! Callers in closed loops, each recording its requests and answers.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use tollgate_core::Clock;
use tollgate_store::MonotonicClock;
use tollgate_testkit::checker::{AdmissionMode, ClientObservation};

use super::Caller;
use crate::patience;

/// How long a caller waits before its next request after a failure.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

/// One request: a rule and a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadRequest {
    /// The rule, which is also the endpoint.
    pub rule: String,
    /// The key of the caller.
    pub key: String,
    /// What it costs.
    pub cost: u64,
}

impl LoadRequest {
    /// A request of cost one.
    pub fn new(rule: &str, key: &str) -> LoadRequest {
        LoadRequest { rule: rule.to_owned(), key: key.to_owned(), cost: 1 }
    }

    fn body(&self) -> String {
        let LoadRequest { rule, key, cost } = self;
        format!(r#"{{"client_key":"{key}","endpoint":"/{rule}","cost":{cost}}}"#)
    }
}

/// Names and addresses of the nodes: callers read it when they connect.
pub type NodeList = Arc<RwLock<Vec<(String, SocketAddr)>>>;

/// The request of a caller, by its number and turn.
pub type RequestScript = Arc<dyn Fn(usize, u64) -> LoadRequest + Send + Sync>;

/// The shape of a load.
#[derive(Clone)]
pub struct LoadProfile {
    /// How many callers, each with one connection to one node.
    pub callers: usize,
    /// How long each waits between an answer and its next request.
    pub pace: Duration,
    /// Their requests.
    pub script: RequestScript,
}

/// A running load.
pub struct BackgroundLoad {
    threads: Vec<JoinHandle<Vec<ClientObservation>>>,
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
}

impl BackgroundLoad {
    /// Starts the callers, spread over all nodes.
    pub fn start(plan: &LoadProfile, nodes: &NodeList, clock: MonotonicClock) -> BackgroundLoad {
        let (is_over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let threads = (0..plan.callers).map(|number| {
            let mut worker = Worker {
                number,
                plan: plan.clone(),
                nodes: Arc::clone(nodes),
                clock,
                is_over: Arc::clone(&is_over),
                answered: Arc::clone(&answered),
                caller: None,
            };
            std::thread::spawn(move || worker.run())
        });
        BackgroundLoad { threads: threads.collect(), is_over, answered }
    }

    /// Answers so far.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Stops it, and returns everything that was observed.
    pub fn stop(self) -> Vec<ClientObservation> {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.into_iter().flat_map(|thread| thread.join().expect("a caller does not panic")).collect()
    }
}

struct Worker {
    number: usize,
    plan: LoadProfile,
    nodes: NodeList,
    clock: MonotonicClock,
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    /// The connection, and the name of the node at its other end.
    caller: Option<(String, Caller)>,
}

impl Worker {
    fn run(&mut self) -> Vec<ClientObservation> {
        let (mut observations, mut turn) = (Vec::new(), 0);
        while !self.is_over.load(Ordering::Relaxed) {
            let ask = (self.plan.script)(self.number, turn);
            let observation = self.ask(ask);
            turn += 1;
            let pace = if observation.mode.is_some() { self.plan.pace } else { AFTER_FAILURE };
            observations.push(observation);
            if !pace.is_zero() {
                patience::pause(pace);
            }
        }
        observations
    }

    fn ask(&mut self, ask: LoadRequest) -> ClientObservation {
        let name = self.connect();
        let Some((_, caller)) = &mut self.caller else { return blank(&ask, "", self.clock.now().nanos()) };
        let (observation, answer) = caller.ask(name.as_deref().unwrap_or_default(), &ask, self.clock);
        match answer {
            Value::Null => self.caller = None,
            _ => drop(self.answered.fetch_add(1, Ordering::Relaxed)),
        }
        observation
    }

    /// Connects if necessary, to the next node if one is unreachable; returns the name of the node.
    fn connect(&mut self) -> Option<String> {
        if self.caller.is_none() {
            let nodes = self.nodes.read().expect("not poisoned").clone();
            let ours = (0..nodes.len()).filter_map(|step| nodes.get((self.number + step) % nodes.len()));
            self.caller = ours.into_iter().find_map(|(name, at)| Some((name.clone(), Caller::connect(*at).ok()?)));
        }
        self.caller.as_ref().map(|(name, _)| name.clone())
    }
}

impl Caller {
    /// Sends a request; returns the observation, and the answer or null.
    pub fn ask(&mut self, node: &str, ask: &LoadRequest, clock: MonotonicClock) -> (ClientObservation, Value) {
        let mut observation = blank(ask, node, clock.now().nanos());
        let answer = self.post("/v1/check", &ask.body()).unwrap_or(Value::Null);
        observation.heard = clock.now().nanos();
        if !answer.is_null() {
            fill(&mut observation, &answer);
        }
        (observation, answer)
    }
}

/// A request without an answer.
fn blank(ask: &LoadRequest, node: &str, now: u64) -> ClientObservation {
    let LoadRequest { rule, key, cost } = ask.clone();
    ClientObservation { rule, key, node: node.to_owned(), mode: None, allowed: false, cost, asked: now, heard: now }
}

/// Records an answer. An answer for another rule than requested belongs to another request: it is recorded under a name
/// that no promise has.
fn fill(observation: &mut ClientObservation, answer: &Value) {
    observation.allowed = answer.get("allowed").and_then(Value::as_bool).unwrap_or(false);
    observation.mode = answer.get("mode").and_then(Value::as_str).and_then(AdmissionMode::named);
    match answer.get("rule").and_then(Value::as_str) {
        Some(rule) if rule != observation.rule => observation.rule = format!("{rule} instead of {}", observation.rule),
        _ => {}
    }
}

/// Sends one request on a connection of its own.
pub(super) fn ask_once(
    node: (&str, SocketAddr),
    ask: &LoadRequest,
    clock: MonotonicClock,
) -> (ClientObservation, Value) {
    match Caller::connect(node.1) {
        Ok(mut caller) => caller.ask(node.0, ask, clock),
        Err(_) => (blank(ask, node.0, clock.now().nanos()), Value::Null),
    }
}
