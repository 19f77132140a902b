//! A fleet under test: its nodes, its load, and the expectations of a row.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tollgate_core::Clock;
use tollgate_store::MonotonicClock;
use tollgate_testkit::checker::{AdmissionMode, ClientObservation, Loss, Promise};

use super::load::{BackgroundLoad, LoadProfile, LoadRequest, NodeList, ask_once};
use super::node::{NodeOptions, TestNode};
use super::rules::{self, FaultRule};
use crate::stalls::StallMonitor;
use crate::wall_clock::WallClock;
use crate::{patience, ports, process};

/// Uncertainty of times that involve two processes.
const DOUBT: Duration = Duration::from_millis(100);
/// How long a store may take to decide, where no row says how soon it must, on a busy machine.
pub const STORE_PATIENCE: Duration = Duration::from_secs(60);

/// A fleet under test. Each row gets a new one, and drops it with all its processes and files.
pub struct Lab {
    /// The nodes, including killed ones.
    pub nodes: Vec<TestNode>,
    /// Expectations that failed.
    pub broken: Vec<String>,
    /// Remarks for the reader of the table.
    pub remarks: Vec<String>,
    /// The bounds of the rules; losses are added as they happen.
    pub promises: Vec<Promise>,
    /// Whether the store's clock only ran forward: otherwise the logs are not checked by it.
    pub store_time_is_one: bool,
    /// Everything that callers observed, including loads that have ended.
    pub observations: Vec<ClientObservation>,
    pub(super) clock: MonotonicClock,
    /// How busy the machine is.
    pub(super) stalls: StallMonitor,
    pub(super) rules: Vec<FaultRule>,
    pub(super) tollgate: PathBuf,
    directory: TempDir,
    listed: NodeList,
    arguments: Vec<String>,
    parts: u64,
}

impl Lab {
    /// A fleet of this binary, with the exact rules and without nodes.
    pub fn new(tollgate: &Path) -> Lab {
        let clock = MonotonicClock::new();
        let mut lab = Lab {
            nodes: Vec::new(),
            broken: Vec::new(),
            remarks: Vec::new(),
            promises: Vec::new(),
            store_time_is_one: true,
            observations: Vec::new(),
            stalls: StallMonitor::start(clock),
            clock,
            rules: Vec::new(),
            tollgate: tollgate.to_owned(),
            directory: process::directory(),
            listed: Arc::default(),
            arguments: Vec::new(),
            parts: 2,
        };
        lab.use_rules(rules::EXACT);
        lab
    }

    /// Replaces the rules, before nodes are started.
    pub fn use_rules(&mut self, rules: &[FaultRule]) {
        self.rules = rules.to_vec();
        self.promises = rules::promises(rules, self.parts);
        std::fs::write(self.directory.path().join("rules.yaml"), rules::file(rules)).expect("a file of rules");
    }

    /// Adds arguments for nodes that are started from now on.
    pub fn add_arguments(&mut self, arguments: &[&str]) {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    }

    /// For rows that check which component decides, not how fast: a slow store on a busy machine still decides, so a
    /// decision without it has another cause.
    pub fn use_long_timeouts(&mut self) {
        self.add_arguments(&["--store-timeout", "2s", "--decision-deadline", "3s"]);
    }

    /// Starts nodes that know the size of the fleet, and waits until the store decides on each.
    pub fn fleet(&mut self, store: &str, count: u64) {
        self.parts = count;
        self.promises = rules::promises(&self.rules, count);
        self.add_arguments(&["--nodes", &count.to_string()]);
        for number in 1..=count {
            self.start_node(&format!("n{number}"), store);
        }
        self.wait_for_store(STORE_PATIENCE);
    }

    /// Starts one node.
    pub fn start_node(&mut self, name: &str, store: &str) -> usize {
        self.start_node_at(name, store, ports::free(), None)
    }

    /// Starts one node on a port, with its own wall clock if one is given.
    pub fn start_node_at(&mut self, name: &str, store: &str, port: u16, clock: Option<&WallClock>) -> usize {
        let (tollgate, directory, arguments) = (&self.tollgate, self.directory.path(), &self.arguments);
        let node = TestNode::start(&NodeOptions { tollgate, directory, name, port, store, arguments, clock });
        self.listed.write().expect("not poisoned").push((node.name.clone(), node.at));
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Removes a node from the list: callers connect to other nodes from now on.
    pub fn unlist(&self, node: usize) {
        let name = &self.nodes[node].name;
        self.listed.write().expect("not poisoned").retain(|(listed, _)| listed != name);
    }

    /// A directory for files of the row.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The time of the clock that all callers use.
    pub fn now(&self) -> u64 {
        self.clock.now().nanos()
    }

    /// Sleeps.
    pub fn pause(&self, millis: u64) {
        patience::pause(Duration::from_millis(millis));
    }

    /// The usual load: this many callers of three keys, on all rules in turn.
    pub fn load(&self, callers: usize) -> BackgroundLoad {
        let names: Vec<&'static str> = self.rules.iter().map(|rule| rule.name).collect();
        self.load_as(&LoadProfile {
            callers,
            pace: Duration::from_millis(1),
            script: Arc::new(move |caller, turn| {
                let rule = names[turn as usize % names.len()];
                LoadRequest::new(rule, &format!("k{}", caller % 3))
            }),
        })
    }

    /// A load with a profile of its own.
    pub fn load_as(&self, plan: &LoadProfile) -> BackgroundLoad {
        BackgroundLoad::start(plan, &self.listed, self.clock)
    }

    /// Sends one request to one node; returns the answer.
    pub fn ask(&mut self, node: usize, rule: &str, key: &str) -> Value {
        self.ask_for(node, &LoadRequest::new(rule, key))
    }

    /// Sends one request to one node; returns the answer.
    pub fn ask_for(&mut self, node: usize, ask: &LoadRequest) -> Value {
        let node = &self.nodes[node];
        let (observation, answer) = ask_once((&node.name, node.at), ask, self.clock);
        self.observations.push(observation);
        answer
    }

    /// The mode in which a node decides about a fresh key now. The cost is zero: nothing is charged.
    pub fn mode(&mut self, node: usize) -> Option<AdmissionMode> {
        let rule = self.rules[0].name.to_owned();
        let ask = LoadRequest { rule, key: "look".to_owned(), cost: 0 };
        let node = &self.nodes[node];
        ask_once((&node.name, node.at), &ask, self.clock).0.mode
    }

    /// Waits until the store decides ten times in a row on every running node, and returns how long that took.
    pub fn wait_for_store(&mut self, within: Duration) -> Option<Duration> {
        let asks = |lab: &mut Lab, node: usize| (0..10).all(|_| lab.mode(node) == Some(AdmissionMode::Store));
        let is_so = |lab: &mut Lab| (0..lab.nodes.len()).all(|node| !lab.nodes[node].is_alive() || asks(lab, node));
        let took = patience::try_until(within, || is_so(self));
        self.expect(took.is_some(), || format!("the store does not decide within {within:?}"));
        took
    }

    /// Records a failed expectation.
    pub fn expect(&mut self, is_so: bool, what: impl FnOnce() -> String) {
        if !is_so {
            self.broken.push(what());
        }
    }

    /// Records a remark.
    pub fn remark(&mut self, what: impl Into<String>) {
        self.remarks.push(what.into());
    }

    /// Between these times the store may have lost everything: every bucket may admit its limit once more (P17).
    pub fn lost(&mut self, from: u64, to: u64) {
        let doubt = DOUBT.as_nanos() as u64;
        for promise in &mut self.promises {
            let units = promise.limit.capacity();
            promise.losses.push(Loss { from: from.saturating_sub(doubt), to: to + doubt, units });
        }
    }

    /// The sum of a metric over all nodes.
    pub fn metric(&self, name: &str) -> u64 {
        self.nodes.iter().map(|node| node.metric(name)).sum()
    }
}
