//! What the tasks of one primary share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::timeout;
use tollgate_core::{Ask, Charge, Digest, Limit, Span, Time};
use tollgate_resp::{RespValue, write_request};
use tollgate_store::{StoreError, StoreErrorKind};
use tracing::{info, warn};

use super::job::{Commanded, Commands, Job};
use super::room::{Level, Memory, Room};
use crate::client::address::HostPort;
use crate::client::breaker::Phase;
use crate::client::clock::Estimate;
use crate::client::connection::{self, ConnectError, Connection, Greeting};
use crate::client::context::Shared;
use crate::client::failure::{Refusal, error};
use crate::client::gate::Gate;
use crate::client::pending::{GaveUp, Manner, Reply, Setback, Ticket, Waiter};
use crate::client::queue::{Full, Queue};
use crate::store::key::Key;
use crate::store::script::{Question, Script};
use crate::store::stats::{Counters, one};

/// A node that is behind believes in a store that it has heard of within this time.
const HEARD_OF: Span = Span::from_secs(2);

/// One primary, as its callers and its tasks see it.
pub(crate) struct Core {
    pub(super) address: HostPort,
    pub(crate) shared: Arc<Shared>,
    pub(super) queue: Queue<Job>,
    pub(super) gate: Gate,
    pub(super) estimate: Mutex<Estimate>,
    pub(crate) counters: Counters,
    /// Connections that are open.
    pub(super) connected: AtomicUsize,
    /// When a reply came last, in nanoseconds; zero for never.
    pub(super) last_contact: AtomicU64,
    /// Whose keys belong to this primary, for keys of its own.
    identity: AtomicU32,
    /// How often each script was sent as text: who was not the first to miss it need not send it again.
    pub(super) reloads: [AtomicU64; Script::ALL.len()],
    /// Where the host was last; still good when nobody knows names any more.
    places: Mutex<Vec<SocketAddr>>,
    /// True once the primary retires.
    over: watch::Sender<bool>,
    /// True once it turned out to be a replica.
    replica: AtomicBool,
    /// What it evicts when its memory is full.
    policy: Mutex<String>,
    /// How much memory it has left.
    room: Room,
}

impl Core {
    pub(super) fn new(address: HostPort, shared: Arc<Shared>) -> Core {
        let now = shared.clock.now();
        Core {
            address,
            queue: Queue::new(shared.config.max_waiting),
            gate: Gate::new(now),
            estimate: Mutex::new(Estimate::new()),
            counters: Counters::new(),
            connected: AtomicUsize::new(0),
            last_contact: AtomicU64::new(0),
            identity: AtomicU32::new(0),
            reloads: [const { AtomicU64::new(0) }; Script::ALL.len()],
            places: Mutex::new(Vec::new()),
            over: watch::Sender::new(false),
            replica: AtomicBool::new(false),
            policy: Mutex::default(),
            room: Room::default(),
            shared,
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.shared.clock.now()
    }

    pub(crate) fn address(&self) -> &HostPort {
        &self.address
    }

    pub(crate) fn is_open(&self) -> bool {
        self.gate.phase() == Phase::Open
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed) > 0
    }

    /// How long a look may take.
    pub(crate) fn patience(&self) -> Span {
        self.shared.config.within
    }

    pub(super) fn replica(&self) -> bool {
        self.replica.load(Ordering::Relaxed)
    }

    /// It turned out to be a replica: whoever knows the topology should look again.
    pub(crate) fn is_a_replica(&self) {
        if !self.replica.swap(true, Ordering::Relaxed) {
            warn!(store = %self.address, "the server is a replica now: deciding without it");
            if self.is_barred() {
                self.queue.fail_all(&error(StoreErrorKind::Unavailable, Refusal::ReadOnly.meaning()));
            }
        }
        self.shared.unsettled.notify_one();
    }

    /// True if nothing may be decided there: what a replica counts, even one that takes writes, is nobody's limit, and
    /// is lost. In a cluster it says itself who has the slot.
    pub(super) fn is_barred(&self) -> bool {
        self.replica() && !self.shared.is_clustered()
    }

    /// It is a primary, or again one.
    pub(crate) fn is_a_primary(&self) {
        self.replica.store(false, Ordering::Relaxed);
    }

    pub(super) fn policy(&self) -> String {
        self.policy.lock().clone()
    }

    /// True if that is new.
    pub(crate) fn set_policy(&self, policy: &str) -> bool {
        let mut known = self.policy.lock();
        let is_new = *known != policy;
        policy.clone_into(&mut known);
        is_new
    }

    pub(super) fn room(&self) -> Level {
        self.room.level()
    }

    /// Takes note of how much memory is in use.
    pub(crate) fn sampled_memory(&self, memory: Memory) {
        self.tell_room(self.room.sampled(memory));
    }

    /// Counts buckets that a decision made.
    pub(super) fn made(&self, buckets: u32) {
        let nodes = self.shared.config.nodes.or_else(|| self.shared.nodes.known()).unwrap_or(1);
        self.tell_room(self.room.made(buckets, nodes));
    }

    fn tell_room(&self, new: Option<Level>) {
        let store = &self.address;
        match new {
            _ if self.shared.config.new_keys_per_second == 0 => {}
            Some(Level::Roomy) => info!(%store, "the store has memory again: new keys get buckets of their own"),
            Some(Level::Scarce) => {
                warn!(%store, "the store's memory is nearly full: new keys above new_keys_per_second share overflow buckets");
            }
            Some(Level::Full) => {
                warn!(%store, "the store's memory is full: all new keys share overflow buckets; raise its maxmemory");
            }
            None => {}
        }
    }

    /// Counts values under keys of ours that were no buckets. The log tells of them ever more rarely.
    pub(super) fn found_foreign(&self, values: u64) {
        for _ in 0..values {
            let count = self.counters.refused(Refusal::Foreign);
            if count.is_power_of_two() {
                warn!(store = %self.address, count, "something else than a bucket was under a key of ours, and was replaced");
            }
        }
    }

    /// The store's time, about.
    pub(crate) fn store_time(&self) -> Option<Time> {
        let now = self.now();
        self.estimate.lock().about(now)
    }

    /// A key of this primary's own, such as `tg:{AAA}epoch`.
    pub(crate) fn own_key(&self, name: &str) -> String {
        let tag = Key::new(self.identity.load(Ordering::Relaxed), Digest::default()).tag();
        format!("tg:{{{}}}{name}", String::from_utf8_lossy(&tag))
    }

    pub(super) fn set_identity(&self, identity: u32) {
        self.identity.store(identity, Ordering::Relaxed);
    }

    /// A question that changes nothing, and its slot: what a probe asks.
    pub(super) fn probe_question(&self) -> Option<(Question, u16)> {
        let limit = Limit::per_second(1).ok()?;
        let identity = self.identity.load(Ordering::Relaxed);
        let charge = Charge { ask: Ask::Peek(1), identity, ..Charge::new(Digest::default(), limit, 1) };
        let question = Question { charges: [charge].into_iter().collect(), refused: false, full: false };
        Some((question, Key::of(&charge).slot()))
    }

    /// Puts a job into the queue and waits for its answer, no longer than until the ticket's deadline.
    pub(super) async fn wait<W, A>(&self, ticket: Arc<Ticket<W, A>>, job: Job, within: Span) -> Reply<W, A> {
        let now = self.now();
        if let Err(why) = self.gate.pass(now) {
            one(&self.counters.turned_away);
            return over(why);
        }
        if let Err(full) = self.queue.push(job) {
            return over(self.not_accepted(full));
        }
        let waiter = Waiter(ticket);
        let left = waiter.0.deadline.since(now);
        let reply = match timeout(left.into(), waiter.0.answered()).await {
            Ok(reply) => return reply,
            Err(_) => self.wait_on(&waiter.0, within).await,
        };
        reply.unwrap_or_else(|| match waiter.0.give_up() {
            GaveUp::Answered(reply) => reply,
            GaveUp::Sent => over(error(StoreErrorKind::Indeterminate, format!("no answer within {within}"))),
            GaveUp::Unsent => over(self.withdrawn(within)),
        })
    }

    /// Time is up, but perhaps only because this node did not get to read the reply: what was executed in time is still
    /// good. So whatever has arrived is read first; and a node that is behind waits as long again for a reply, before
    /// it decides what the store has probably decided already. The engine's own deadline ends that, too.
    async fn wait_on<W, A>(&self, ticket: &Ticket<W, A>, within: Span) -> Option<Reply<W, A>> {
        let more = if self.is_behind() && ticket.is_sent() { within } else { Span::ZERO };
        yield_now().await;
        timeout(more.into(), ticket.answered()).await.ok()
    }

    fn not_accepted(&self, full: Full) -> StoreError {
        match full {
            Full::Saturated => {
                one(&self.counters.saturated);
                error(StoreErrorKind::Saturated, format!("{} questions are waiting", self.shared.config.max_waiting))
            }
            Full::Retired => error(StoreErrorKind::Unavailable, "the server is no longer used"),
        }
    }

    fn withdrawn(&self, within: Span) -> StoreError {
        one(&self.counters.withdrawn);
        let what = if self.is_connected() { "the connection was busy" } else { "there was no connection" };
        let why = error(StoreErrorKind::Unavailable, format!("{what} for {within}"));
        if self.is_patient(within) {
            self.late(&why);
        }
        why
    }

    /// Whether who waits so long and gets nothing says something about the server: a caller without patience does not.
    pub(super) fn is_patient(&self, within: Span) -> bool {
        within.nanos() >= self.shared.config.within.nanos() / 2
    }

    /// Sends commands in one go; one value per command.
    pub(crate) async fn pipeline(&self, commands: &[&[&[u8]]], within: Span) -> Result<Vec<RespValue>, StoreError> {
        if commands.is_empty() {
            // Without a command there is no reply, and waiting for one would take that of the next call.
            return Ok(Vec::new());
        }
        let mut bytes = Vec::new();
        commands.iter().for_each(|parts| write_request(&mut bytes, parts));
        let work = Commands { bytes, replies: commands.len() };
        let ticket: Arc<Commanded> = Ticket::new(work, 0, Manner::Joined, self.now().after(within));
        match self.wait(ticket.clone(), Job::Command(ticket), within).await {
            Ok(values) => Ok(values),
            Err(Setback::Failed(why)) => Err(why),
            // Nobody gives plain commands back: their replies are the caller's to read.
            Err(_) => Err(error(StoreErrorKind::Indeterminate, "a reply to something else")),
        }
    }

    /// Connects, by the address the host has, or had when it was last known.
    pub(super) async fn connect(&self) -> Result<(Connection, Greeting), ConnectError> {
        one(&self.counters.connects);
        let places = self.places().await?;
        Connection::open(&self.shared, &self.address, &places, &Script::TEXTS).await
    }

    async fn places(&self) -> Result<Vec<SocketAddr>, ConnectError> {
        let patience = Duration::from(self.shared.config.connect_timeout);
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

    /// Learns from a reply that tells the store's time.
    pub(crate) fn observe_time(&self, sent: Time, received: Time, store: Time) {
        if self.estimate.lock().observe(sent, received, store) {
            one(&self.counters.clock_steps);
            warn!(store = %self.address, "the store's clock has been set");
        }
    }

    /// True for one of those who miss a script: one text per script and loss, also among several connections. `before`
    /// is how often each had been sent as text, `loading` what this caller sends already.
    pub(super) fn is_first_to_reload(&self, place: usize, before: &[u64], loading: &mut [bool]) -> bool {
        let (Some(count), Some(before), Some(loading)) =
            (self.reloads.get(place), before.get(place), loading.get_mut(place))
        else {
            return true;
        };
        let first = !std::mem::replace(loading, true);
        first && count.compare_exchange(*before, before + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// True if this node's own timers are late, and the store was heard of a moment ago: what is late now may be late
    /// because of this node.
    pub(super) fn is_behind(&self) -> bool {
        let (now, heard) = (self.now(), Time::from_nanos(self.last_contact.load(Ordering::Relaxed)));
        now.since(heard) <= HEARD_OF && self.shared.pace.is_behind(now, self.shared.config.within)
    }

    /// Something was too late. That says something about the server, unless this node itself is late.
    pub(super) fn late(&self, why: &StoreError) {
        match self.is_behind() {
            true => one(&self.counters.own_delays),
            false => self.failed(why),
        }
    }

    /// Something failed that says something about the server.
    pub(super) fn failed(&self, why: &StoreError) {
        if self.gate.failed(self.now(), why) {
            self.opened(why);
        }
    }

    /// No connection could be made.
    pub(super) fn not_connected(&self, failure: &ConnectError) {
        let why = error(failure.kind(), failure.to_string());
        match failure {
            ConnectError::Late(_) if !self.is_open() && self.is_behind() => one(&self.counters.own_delays),
            _ => self.unreachable(&why),
        }
    }

    /// The server cannot be reached.
    fn unreachable(&self, why: &StoreError) {
        if self.gate.trip(self.now(), why) {
            self.opened(why);
        } else {
            self.gate.probed(self.now(), false);
            self.gate.still(why);
        }
    }

    fn opened(&self, why: &StoreError) {
        one(&self.counters.openings);
        warn!(store = %self.address, reason = %why.detail, "store not answering: deciding without it");
        let unsent = error(StoreErrorKind::Unavailable, why.detail.clone());
        self.queue.fail_all(&unsent);
        self.queue.call();
        self.shared.unsettled.notify_one();
    }

    /// A probe came back.
    pub(super) fn probed(&self, good: bool) {
        if self.gate.probed(self.now(), good) {
            info!(store = %self.address, "store answers again: returning to it");
        }
    }

    /// Ends the tasks, and fails what waits.
    pub(super) fn retire(&self) {
        self.over.send_replace(true);
        self.queue.retire(&error(StoreErrorKind::Unavailable, "the server is no longer used"));
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Waits that long, or until the primary retires.
    pub(crate) async fn pause(&self, span: Span) {
        if span.is_zero() {
            return;
        }
        let mut over = self.over.subscribe();
        let _ = timeout(span.into(), over.wait_for(|over| *over)).await;
    }
}

fn over<W, A>(why: StoreError) -> Reply<W, A> {
    Err(Setback::Failed(why))
}
