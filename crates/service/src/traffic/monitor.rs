//! The monitor: takes decisions from the path of requests, and answers questions about them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex};
use tollgate_analytics::{Traffic, TrafficBudget};
use tollgate_core::{Clock, KeyHasher, Request, Secret, Time};
use tollgate_engine::{Decision, Generation, Verdict};
use tollgate_ruleset::RuleSet;

use super::generation_rules::GenerationRules;
use super::known_reports::FleetReports;
use super::link_state::LinkState;
use super::live::{LiveEvents, LiveSender};
use super::metrics::TrafficMetrics;
use super::other_counts::OtherCounts;
use super::sample_buffer::{HandedOver, SampleBuffers};
use crate::violations::KeyHashing;

/// Generations whose decisions may still be waiting.
const GENERATIONS_MAX: usize = 8;

/// Settings of a monitor.
pub struct TrafficConfig {
    /// The clock of this node.
    pub clock: Arc<dyn Clock>,
    /// The memory that it may take.
    pub bytes: usize,
    /// Keys the digests of clients.
    pub secret: Secret,
    /// Whether clients are shown in plain text, instead of as digests under the site's key.
    pub plain_keys: bool,
    /// The name of this node.
    pub node: String,
    /// Seals messages between the nodes of a fleet, which all have it.
    pub fleet_secret: [u8; 32],
}

/// Watches the decisions of a server.
pub struct TrafficMonitor {
    pub(super) buffers: SampleBuffers,
    pub(super) state: Mutex<TrafficState>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) live: LiveSender,
    pub(super) is_woken: Mutex<bool>,
    pub(super) woken: Condvar,
    pub(super) reports: FleetReports,
    pub(super) link: LinkState,
    /// What other nodes counted, while events are listened to.
    pub(super) others: Mutex<OtherCounts>,
    hashing: OnceLock<KeyHashing>,
    hasher: KeyHasher,
    /// The newest generation whose rules are known.
    adopted: AtomicU64,
    metrics: Arc<TrafficMetrics>,
    plain_keys: bool,
    node: String,
}

/// What the collector writes and questions read.
pub(super) struct TrafficState {
    pub(super) traffic: Traffic,
    /// The newest last.
    pub(super) generations: VecDeque<GenerationRules>,
    /// The second of the last tick.
    pub(super) ticked: u64,
}

impl TrafficMonitor {
    /// A monitor that collects only when it is [told to](TrafficMonitor::collect), for tests.
    pub fn new(config: TrafficConfig) -> Arc<TrafficMonitor> {
        let TrafficConfig { clock, bytes, secret, plain_keys, node, fleet_secret } = config;
        let mut hasher = KeyHasher::new(secret);
        hasher.part(b"traffic");
        let traffic = Traffic::new(TrafficBudget::of(bytes));
        Arc::new(TrafficMonitor {
            buffers: SampleBuffers::default(),
            state: Mutex::new(TrafficState { traffic, generations: VecDeque::new(), ticked: 0 }),
            clock,
            live: LiveSender::new(),
            is_woken: Mutex::new(false),
            woken: Condvar::new(),
            reports: FleetReports::default(),
            link: LinkState::new(&fleet_secret),
            others: Mutex::default(),
            hashing: OnceLock::new(),
            hasher,
            adopted: AtomicU64::new(0),
            metrics: Arc::default(),
            plain_keys,
            node,
        })
    }

    /// Its metrics.
    pub fn metrics(&self) -> Arc<TrafficMetrics> {
        self.metrics.clone()
    }

    /// True if clients are shown in plain text.
    pub const fn has_plain_keys(&self) -> bool {
        self.plain_keys
    }

    /// Sets how clients are shown: questions may name them so. Needed once, when the key of the site is known.
    pub fn show_clients_by(&self, hashing: KeyHashing) {
        let _ = self.hashing.set(hashing); // the key of a site does not change while a process lasts
    }

    /// How clients are shown, if that is by digests.
    pub(super) fn key_hashing(&self) -> Option<&KeyHashing> {
        self.hashing.get().filter(|_| !self.plain_keys)
    }

    /// The name of this node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The time by the wall clock.
    pub fn now(&self) -> Time {
        self.clock.wall()
    }

    /// Listens to what happens.
    pub fn listen(&self) -> LiveEvents {
        self.live.listen()
    }

    /// Prepares for the decisions of a generation. Called after every swap; otherwise its first decision does it.
    pub fn adopt(&self, generation: &Generation) {
        self.adopt_rules(generation.number, &generation.rules);
    }

    /// Hands a decision over. Never waits.
    #[inline]
    pub fn decided(&self, requests: &[Request<'_>], decision: &Decision) {
        if matches!(decision.verdict, Verdict::Invalid(_)) {
            return;
        }
        if self.adopted.load(Ordering::Relaxed) < decision.generation() {
            self.adopt_rules(decision.generation(), decision.rules());
        }
        match self.buffers.push(requests, decision) {
            HandedOver::Buffered => {}
            HandedOver::HalfFull => self.wake(),
            HandedOver::Dropped => {
                self.metrics.drop_one();
                self.wake();
            }
        }
    }

    #[cold]
    fn adopt_rules(&self, number: u64, rules: &RuleSet) {
        let added = GenerationRules::new(number, rules);
        let mut state = self.state.lock();
        if state.generations.iter().any(|known| known.number >= number) {
            return;
        }
        state.generations.push_back(added);
        if state.generations.len() > GENERATIONS_MAX {
            state.generations.pop_front();
        }
        if state.traffic.is_full() {
            state.keep_rules_in_force();
        }
        self.adopted.store(number, Ordering::Relaxed);
    }

    /// Wakes the collector.
    #[cold]
    fn wake(&self) {
        if let Some(mut is_woken) = self.is_woken.try_lock()
            && !*is_woken
        {
            *is_woken = true;
            self.woken.notify_one();
        }
    }

    /// The digest of a client of a namespace.
    pub(super) fn client_key(&self, namespace: &str, client: &str) -> u64 {
        let mut hasher = self.hasher;
        hasher.part(namespace.as_bytes());
        hasher.part(client.as_bytes());
        let [key, _] = hasher.finish().0;
        key
    }
}

impl TrafficState {
    /// Makes room: rules that are gone are forgotten.
    fn keep_rules_in_force(&mut self) {
        let TrafficState { traffic, generations, .. } = self;
        if let Some(newest) = generations.back() {
            traffic.keep_rules(|namespace, rule| newest.has(namespace, rule));
        }
        generations.iter_mut().for_each(GenerationRules::forget_indexes);
    }
}

impl fmt::Debug for TrafficMonitor {
    /// Without clients.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrafficMonitor").field("node", &self.node).finish_non_exhaustive()
    }
}
