//! Callers in closed loops, each writing down what it asked and heard.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use tollgate_core::Clock;
use tollgate_store::MonotonicClock;
use tollgate_testkit::checker::{Mode, Note};

use super::Caller;
use crate::patience;

/// How long a caller waits before it calls again after nobody answered.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

/// One request: the rule's endpoint, and whose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The rule that it is about, which is also its endpoint.
    pub rule: String,
    /// Who asks.
    pub key: String,
    /// What it costs.
    pub cost: u64,
}

impl Ask {
    /// A request of cost one.
    pub fn new(rule: &str, key: &str) -> Ask {
        Ask { rule: rule.to_owned(), key: key.to_owned(), cost: 1 }
    }

    fn body(&self) -> String {
        let Ask { rule, key, cost } = self;
        format!(r#"{{"client_key":"{key}","endpoint":"/{rule}","cost":{cost}}}"#)
    }
}

/// Who listens where at present: callers look here when they connect.
pub type Directory = Arc<RwLock<Vec<(String, SocketAddr)>>>;

/// What each caller asks for, by its number and turn.
pub type Script = Arc<dyn Fn(usize, u64) -> Ask + Send + Sync>;

/// How a load is driven.
#[derive(Clone)]
pub struct Plan {
    /// How many callers, each with one connection to one node.
    pub callers: usize,
    /// How long each waits between an answer and its next request.
    pub pace: Duration,
    /// What they ask.
    pub script: Script,
}

/// Callers at work.
pub struct Load {
    threads: Vec<JoinHandle<Vec<Note>>>,
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
}

impl Load {
    /// Sends the callers to work, spread over all nodes.
    pub fn start(plan: &Plan, nodes: &Directory, clock: MonotonicClock) -> Load {
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
        Load { threads: threads.collect(), is_over, answered }
    }

    /// Answers so far.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Ends it, and answers everything that was written down.
    pub fn stop(self) -> Vec<Note> {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.into_iter().flat_map(|thread| thread.join().expect("a caller does not panic")).collect()
    }
}

struct Worker {
    number: usize,
    plan: Plan,
    nodes: Directory,
    clock: MonotonicClock,
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    /// The connection, and the name of the node at its other end.
    caller: Option<(String, Caller)>,
}

impl Worker {
    fn run(&mut self) -> Vec<Note> {
        let (mut notes, mut turn) = (Vec::new(), 0);
        while !self.is_over.load(Ordering::Relaxed) {
            let ask = (self.plan.script)(self.number, turn);
            let note = self.ask(ask);
            turn += 1;
            let pace = if note.mode.is_some() { self.plan.pace } else { AFTER_FAILURE };
            notes.push(note);
            if !pace.is_zero() {
                patience::pause(pace);
            }
        }
        notes
    }

    fn ask(&mut self, ask: Ask) -> Note {
        let name = self.connect();
        let Some((_, caller)) = &mut self.caller else { return blank(&ask, "", self.clock.now().nanos()) };
        let (note, answer) = caller.ask(name.as_deref().unwrap_or_default(), &ask, self.clock);
        match answer {
            Value::Null => self.caller = None,
            _ => drop(self.answered.fetch_add(1, Ordering::Relaxed)),
        }
        note
    }

    /// Makes sure of a connection, and answers to whom. A node that is gone is left for the next one.
    fn connect(&mut self) -> Option<String> {
        if self.caller.is_none() {
            let nodes = self.nodes.read().expect("nobody panics with the directory").clone();
            let ours = (0..nodes.len()).filter_map(|step| nodes.get((self.number + step) % nodes.len()));
            self.caller = ours.into_iter().find_map(|(name, at)| Some((name.clone(), Caller::connect(*at).ok()?)));
        }
        self.caller.as_ref().map(|(name, _)| name.clone())
    }
}

impl Caller {
    /// Asks, and writes down what came of it; null if nothing did.
    pub fn ask(&mut self, node: &str, ask: &Ask, clock: MonotonicClock) -> (Note, Value) {
        let mut note = blank(ask, node, clock.now().nanos());
        let answer = self.post("/v1/check", &ask.body()).unwrap_or(Value::Null);
        note.heard = clock.now().nanos();
        if !answer.is_null() {
            fill(&mut note, &answer);
        }
        (note, answer)
    }
}

/// A request without an answer.
fn blank(ask: &Ask, node: &str, now: u64) -> Note {
    let Ask { rule, key, cost } = ask.clone();
    Note { rule, key, node: node.to_owned(), mode: None, allowed: false, cost, asked: now, heard: now }
}

/// Writes an answer down. One that is about another rule than was asked is nobody's: it belongs to somebody else's
/// question, and stands in the notes under a name that no promise knows.
fn fill(note: &mut Note, answer: &Value) {
    note.allowed = answer.get("allowed").and_then(Value::as_bool).unwrap_or(false);
    note.mode = answer.get("mode").and_then(Value::as_str).and_then(Mode::named);
    match answer.get("rule").and_then(Value::as_str) {
        Some(rule) if rule != note.rule => note.rule = format!("{rule} instead of {}", note.rule),
        _ => {}
    }
}

/// One request on a connection of its own.
pub(super) fn ask_once(node: (&str, SocketAddr), ask: &Ask, clock: MonotonicClock) -> (Note, Value) {
    match Caller::connect(node.1) {
        Ok(mut caller) => caller.ask(node.0, ask, clock),
        Err(_) => (blank(ask, node.0, clock.now().nanos()), Value::Null),
    }
}
