//! The state that the callers and tasks of one primary share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;
use tollgate_core::{Ask, Charge, Digest, Limit, Span, Time};
use tollgate_resp::{RespValue, write_request};
use tollgate_store::{StoreError, StoreErrorKind};
use tracing::{info, warn};

use super::call::{Commands, PendingCommands, QueuedCall};
use super::memory::{MemoryGauge, MemoryLevel, MemoryUse};
use crate::client::address::HostPort;
use crate::client::breaker::{AtomicBreaker, Phase};
use crate::client::clock::ClockEstimate;
use crate::client::connection::{self, ConnectError, Handshake, RedisConnection};
use crate::client::context::RedisContext;
use crate::client::failure::{ErrorCode, error};
use crate::client::queue::{CallQueue, PendingCall, Retry, SendMode};
use crate::store::key::BucketKey;
use crate::store::script::{Script, ScriptRequest};
use crate::store::stats::{Counters, increment};

/// A slow node trusts a store that replied within this time.
const HEARD_OF: Span = Span::from_secs(2);

/// The state of one primary.
pub(crate) struct PrimaryCore {
    pub(super) address: HostPort,
    pub(crate) context: Arc<RedisContext>,
    pub(super) queue: CallQueue<QueuedCall>,
    pub(super) breaker: AtomicBreaker,
    pub(super) estimate: Mutex<ClockEstimate>,
    pub(crate) counters: Counters,
    /// Open connections.
    pub(super) connected: AtomicUsize,
    /// When the last reply arrived, in nanoseconds; zero for never.
    pub(super) last_contact: AtomicU64,
    /// An identity whose keys this primary serves, for its own keys.
    identity: AtomicU32,
    /// How often each script was sent as text: of several drivers that miss a script, only the first sends it.
    pub(super) reloads: [AtomicU64; Script::ALL.len()],
    /// The last known addresses of the host, used while name resolution fails.
    places: Mutex<Vec<SocketAddr>>,
    /// True once the primary retires.
    over: watch::Sender<bool>,
    /// True if it is a replica.
    replica: AtomicBool,
    /// Its eviction policy.
    policy: Mutex<String>,
    /// How full its memory is.
    memory: MemoryGauge,
}

impl PrimaryCore {
    pub(super) fn new(address: HostPort, context: Arc<RedisContext>) -> PrimaryCore {
        let now = context.clock.now();
        PrimaryCore {
            address,
            queue: CallQueue::new(context.config.max_waiting),
            breaker: AtomicBreaker::new(now),
            estimate: Mutex::new(ClockEstimate::new()),
            counters: Counters::new(),
            connected: AtomicUsize::new(0),
            last_contact: AtomicU64::new(0),
            identity: AtomicU32::new(0),
            reloads: [const { AtomicU64::new(0) }; Script::ALL.len()],
            places: Mutex::new(Vec::new()),
            over: watch::Sender::new(false),
            replica: AtomicBool::new(false),
            policy: Mutex::default(),
            memory: MemoryGauge::default(),
            context,
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.context.clock.now()
    }

    pub(crate) fn address(&self) -> &HostPort {
        &self.address
    }

    pub(crate) fn is_open(&self) -> bool {
        self.breaker.phase() == Phase::Open
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed) > 0
    }

    /// Timeout of the watch's commands.
    pub(crate) fn patience(&self) -> Span {
        self.context.config.within
    }

    pub(super) fn replica(&self) -> bool {
        self.replica.load(Ordering::Relaxed)
    }

    /// The server is a replica: the topology must be looked up again.
    pub(crate) fn mark_replica(&self) {
        if !self.replica.swap(true, Ordering::Relaxed) {
            warn!(store = %self.address, "the server is a replica now: deciding without it");
            if self.is_barred() {
                self.queue.fail_all(&error(StoreErrorKind::Unavailable, ErrorCode::ReadOnly.meaning()));
            }
        }
        self.context.topology_changed.notify_one();
    }

    /// True if the server must not decide: the counts of a replica, even of a writable one, are lost. In a cluster, a
    /// replica redirects by itself.
    pub(super) fn is_barred(&self) -> bool {
        self.replica() && !self.context.is_clustered()
    }

    /// The server is a primary, or has become one again.
    pub(crate) fn mark_primary(&self) {
        self.replica.store(false, Ordering::Relaxed);
    }

    pub(super) fn policy(&self) -> String {
        self.policy.lock().clone()
    }

    /// Returns whether the policy changed.
    pub(crate) fn set_policy(&self, policy: &str) -> bool {
        let mut known = self.policy.lock();
        let is_new = *known != policy;
        policy.clone_into(&mut known);
        is_new
    }

    pub(super) fn memory_level(&self) -> MemoryLevel {
        self.memory.level()
    }

    /// Records how much memory is in use.
    pub(crate) fn record_memory(&self, memory: MemoryUse) {
        self.log_memory_level(self.memory.record_sample(memory));
    }

    /// Counts buckets that a decision created.
    pub(super) fn record_new_buckets(&self, buckets: u32) {
        let nodes = self.context.config.nodes.or_else(|| self.context.nodes.known()).unwrap_or(1);
        self.log_memory_level(self.memory.record_new_buckets(buckets, nodes));
    }

    fn log_memory_level(&self, new: Option<MemoryLevel>) {
        let store = &self.address;
        match new {
            _ if self.context.config.new_keys_per_second == 0 => {}
            Some(MemoryLevel::Roomy) => info!(%store, "the store has memory again: new keys get buckets of their own"),
            Some(MemoryLevel::Scarce) => {
                warn!(%store, "the store's memory is nearly full: new keys above new_keys_per_second share overflow buckets");
            }
            Some(MemoryLevel::Full) => {
                warn!(%store, "the store's memory is full: all new keys share overflow buckets; raise its maxmemory");
            }
            None => {}
        }
    }

    /// Counts values under our keys that are not buckets. The log reports them at increasing intervals.
    pub(super) fn count_foreign(&self, values: u64) {
        for _ in 0..values {
            let count = self.counters.count_error(ErrorCode::Foreign);
            if count.is_power_of_two() {
                warn!(store = %self.address, count, "replaced a value that is not a bucket");
            }
        }
    }

    /// The estimated store time.
    pub(crate) fn store_time(&self) -> Option<Time> {
        let now = self.now();
        self.estimate.lock().about(now)
    }

    /// A key of this primary itself, such as `tg:{AAA}epoch`.
    pub(crate) fn own_key(&self, name: &str) -> String {
        let tag = BucketKey::new(self.identity.load(Ordering::Relaxed), Digest::default()).tag();
        format!("tg:{{{}}}{name}", String::from_utf8_lossy(&tag))
    }

    pub(super) fn set_identity(&self, identity: u32) {
        self.identity.store(identity, Ordering::Relaxed);
    }

    /// A read-only request and its slot, for probes.
    pub(super) fn probe_request(&self) -> Option<(ScriptRequest, u16)> {
        let limit = Limit::per_second(1).ok()?;
        let identity = self.identity.load(Ordering::Relaxed);
        let charge = Charge { ask: Ask::Peek(1), identity, ..Charge::new(Digest::default(), limit, 1) };
        let request = ScriptRequest { charges: [charge].into_iter().collect(), denied: false, full: false };
        Some((request, BucketKey::of(&charge).slot()))
    }

    /// Whether a timeout of this length says something about the server: a very short one does not.
    pub(super) fn is_patient(&self, within: Span) -> bool {
        within.nanos() >= self.context.config.within.nanos() / 2
    }

    /// Sends commands in one pipeline; one value per command.
    pub(crate) async fn pipeline(&self, commands: &[&[&[u8]]], within: Span) -> Result<Vec<RespValue>, StoreError> {
        if commands.is_empty() {
            // Without commands there is no reply: waiting for one would take that of the next call.
            return Ok(Vec::new());
        }
        let mut bytes = Vec::new();
        commands.iter().for_each(|parts| write_request(&mut bytes, parts));
        let work = Commands { bytes, replies: commands.len() };
        let call: Arc<PendingCommands> = PendingCall::new(work, 0, SendMode::Joined, self.now().after(within));
        match self.wait(call.clone(), QueuedCall::Command(call), within).await {
            Ok(values) => Ok(values),
            Err(Retry::Failed(why)) => Err(why),
            // Plain commands are not returned for a retry: their callers read the replies.
            Err(_) => Err(error(StoreErrorKind::Indeterminate, "a reply to another call")),
        }
    }

    /// Connects to the address of the host, or to the last known one.
    pub(super) async fn connect(&self) -> Result<(RedisConnection, Handshake), ConnectError> {
        increment(&self.counters.connects);
        let places = self.places().await?;
        RedisConnection::open(&self.context, &self.address, &places, &Script::texts()).await
    }

    async fn places(&self) -> Result<Vec<SocketAddr>, ConnectError> {
        let patience = Duration::from(self.context.config.connect_timeout);
        let found = timeout(patience, connection::resolve(&self.address)).await;
        let known = self.places.lock().clone();
        match found {
            Ok(Ok(places)) if !places.is_empty() => {
                self.places.lock().clone_from(&places);
                Ok(places)
            }
            _ if !known.is_empty() => Ok(known),
            Ok(Err(error)) => Err(error),
            _ => Err(ConnectError::Unreachable(format!("{} has no address", self.address.host))),
        }
    }

    /// Learns from a reply that contains the store's time.
    pub(crate) fn observe_time(&self, sent: Time, received: Time, store: Time) {
        if self.estimate.lock().observe(sent, received, store) {
            increment(&self.counters.clock_steps);
            warn!(store = %self.address, "the store's clock has been set");
        }
    }

    /// True for the first driver that misses a script: one text per script and loss, also among several connections.
    /// `before` is how often each script had been sent as text, `loading` which scripts this driver is already sending.
    pub(super) fn is_first_to_reload(&self, script: usize, before: &[u64], loading: &mut [bool]) -> bool {
        let (Some(count), Some(before), Some(loading)) =
            (self.reloads.get(script), before.get(script), loading.get_mut(script))
        else {
            return true;
        };
        let first = !std::mem::replace(loading, true);
        first && count.compare_exchange(*before, before + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// True if this node's own timers are late and the store replied recently: late replies may be this node's fault.
    pub(super) fn is_behind(&self) -> bool {
        let (now, heard) = (self.now(), Time::from_nanos(self.last_contact.load(Ordering::Relaxed)));
        now.since(heard) <= HEARD_OF && self.context.timer_lag.is_behind(now, self.context.config.within)
    }

    /// Something was late. That counts against the server, unless this node itself is late.
    pub(super) fn late(&self, why: &StoreError) {
        match self.is_behind() {
            true => increment(&self.counters.own_delays),
            false => self.failed(why),
        }
    }

    /// A failure that counts against the server.
    pub(super) fn failed(&self, why: &StoreError) {
        if self.breaker.failed(self.now(), why) {
            self.opened(why);
        }
    }

    /// Opening a connection failed.
    pub(super) fn not_connected(&self, failure: &ConnectError) {
        let why = error(failure.kind(), failure.to_string());
        match failure {
            ConnectError::Late(_) if !self.is_open() && self.is_behind() => increment(&self.counters.own_delays),
            _ => self.unreachable(&why),
        }
    }

    /// The server is unreachable.
    fn unreachable(&self, why: &StoreError) {
        if self.breaker.trip(self.now(), why) {
            self.opened(why);
        } else {
            self.breaker.probed(self.now(), false);
            self.breaker.still(why);
        }
    }

    fn opened(&self, why: &StoreError) {
        increment(&self.counters.openings);
        warn!(store = %self.address, reason = %why.detail, "store not answering: deciding without it");
        let unsent = error(StoreErrorKind::Unavailable, why.detail.clone());
        self.queue.fail_all(&unsent);
        self.queue.wake_all();
        self.context.topology_changed.notify_one();
    }

    /// A probe ended.
    pub(super) fn probed(&self, good: bool) {
        if self.breaker.probed(self.now(), good) {
            info!(store = %self.address, "store answers again: returning to it");
        }
    }

    /// Ends the tasks and fails waiting calls.
    pub(super) fn retire(&self) {
        self.over.send_replace(true);
        self.queue.retire(&error(StoreErrorKind::Unavailable, "the server is no longer used"));
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Waits for `span`, or until the primary retires.
    pub(crate) async fn pause(&self, span: Span) {
        if span.is_zero() {
            return;
        }
        let mut over = self.over.subscribe();
        let _ = timeout(span.into(), over.wait_for(|over| *over)).await;
    }
}
