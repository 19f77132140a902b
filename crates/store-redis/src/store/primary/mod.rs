//! One primary server: every call to it passes through here, is sent at most once, and completes or fails by its
//! deadline.
//!
//! ```text
//! ask ─▶ breaker ─▶ queue ─▶ driver ─▶ one batch of calls ─▶ connection ─▶ replies ─▶ pending calls ─▶ ask
//!                  bounded  takes all   requests share calls               in order
//! ```

mod call;
mod core;
mod driver;
mod in_flight;
pub(crate) mod memory;
mod sweep;
mod watch;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::task::yield_now;
use tokio::time::timeout;
use tollgate_core::{Receipt, Span, Time};
use tollgate_resp::RespValue;
use tollgate_store::{StoreError, StoreErrorKind};

use self::call::{PendingAsk, PendingReturn, QueuedCall};
use self::core::PrimaryCore;
use self::memory::MemoryLevel;
use crate::client::address::HostPort;
use crate::client::breaker::Phase;
use crate::client::context::RedisContext;
use crate::client::failure::{ErrorCode, Failure, Redirect, Redirected, error, meaning_of};
use crate::client::queue::{CallResult, GaveUp, PendingCall, QueueError, Retry, SendMode, WithdrawOnDrop};
use crate::client::topology::ManagedServer;
use crate::store::key::BucketKey;
use crate::store::script::{ScriptAnswer, ScriptRequest};
use crate::store::stats::{PrimaryStats, increment};

/// Pause before trying again while a slot migrates.
const SHORTLY: Span = Span::from_millis(2);

/// One primary, and the tasks that own its connections. Dropping it ends them.
pub struct Primary {
    core: Arc<PrimaryCore>,
}

/// The health of a primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Its address.
    pub address: HostPort,
    /// The phase of its breaker.
    pub phase: Phase,
    /// Whether a connection to it is open.
    pub connected: bool,
    /// True if it is a replica.
    pub replica: bool,
    /// Its eviction policy, such as `noeviction`; empty if unknown.
    pub policy: String,
    /// How full its memory is.
    pub memory: MemoryLevel,
    /// When it last replied, by this node's clock.
    pub last_contact: Option<Time>,
    /// Why its breaker is not closed.
    pub trouble: Option<String>,
}

impl Primary {
    /// Starts the tasks of a primary on the current runtime.
    pub fn start(address: HostPort, context: Arc<RedisContext>) -> Arc<Primary> {
        let connections = context.config.connections.max(1);
        context.measure_timer_lag();
        let core = Arc::new(PrimaryCore::new(address, context));
        for number in 0..connections {
            tokio::spawn(driver::drive(core.clone(), number));
        }
        tokio::spawn(watch::run(core.clone()));
        Arc::new(Primary { core })
    }

    /// Its address.
    pub fn address(&self) -> &HostPort {
        &self.core.address
    }

    /// Sends a request whose keys are in this slot, and waits for the answer at most `within`.
    pub async fn ask(
        &self,
        request: ScriptRequest,
        slot: u16,
        within: Span,
    ) -> Result<ScriptAnswer, Failure<ScriptRequest>> {
        let queued = |call: &Arc<PendingAsk>| QueuedCall::Ask(call.clone());
        self.perform(request, slot, SendMode::Joined, within, queued).await
    }

    /// Sends a request that another primary redirected here with ASK.
    pub async fn ask_asking(
        &self,
        request: ScriptRequest,
        slot: u16,
        within: Span,
    ) -> Result<ScriptAnswer, Failure<ScriptRequest>> {
        let queued = |call: &Arc<PendingAsk>| QueuedCall::Ask(call.clone());
        self.perform(request, slot, SendMode::Asking, within, queued).await
    }

    /// Sends a read-only request to the script that decides.
    pub async fn probe(&self, within: Span) -> Result<(), StoreError> {
        let Some((request, slot)) = self.core.probe_request() else { return Ok(()) };
        self.ask(request, slot, within).await.map(|_| ()).map_err(Failure::into_error)
    }

    /// Gives receipts of one slot back, and returns how many of them gave something back.
    pub async fn give_back(
        &self,
        receipts: Vec<Receipt>,
        slot: u16,
        within: Span,
    ) -> Result<usize, Failure<Vec<Receipt>>> {
        let queued = |call: &Arc<PendingReturn>| QueuedCall::GiveBack(call.clone());
        self.perform(receipts, slot, SendMode::Joined, within, queued).await
    }

    /// [`give_back`](Primary::give_back) of receipts that another primary redirected here with ASK.
    pub async fn give_back_asking(
        &self,
        receipts: Vec<Receipt>,
        slot: u16,
        within: Span,
    ) -> Result<usize, Failure<Vec<Receipt>>> {
        let queued = |call: &Arc<PendingReturn>| QueuedCall::GiveBack(call.clone());
        self.perform(receipts, slot, SendMode::Asking, within, queued).await
    }

    /// Sends a plain command. An error reply is a failure.
    pub async fn command(&self, parts: &[&[u8]], within: Span) -> Result<RespValue, Failure> {
        let replies = self.core.pipeline(&[parts], within).await.map_err(Failure::Store)?;
        let Some(reply) = replies.into_iter().next() else {
            return Err(Failure::Store(error(StoreErrorKind::Indeterminate, "no reply")));
        };
        let Some(code) = ErrorCode::of(&reply) else { return Ok(reply) };
        self.core.counters.count_error(code);
        if let Some(redirect) = Redirect::of(code, &reply, &self.core.address.host) {
            return Err(Failure::Redirected(Box::new(Redirected { redirect, work: () })));
        }
        let kind = code.treatment().kind().unwrap_or(StoreErrorKind::Unavailable);
        Err(Failure::Store(error(kind, meaning_of(code, &reply))))
    }

    /// Sends plain commands in one pipeline; one value per command, which may be an error.
    pub async fn pipeline(&self, commands: &[&[&[u8]]], within: Span) -> Result<Vec<RespValue>, StoreError> {
        self.core.pipeline(commands, within).await
    }

    /// How full its memory is.
    pub(crate) fn memory_level(&self) -> MemoryLevel {
        self.core.memory_level()
    }

    /// Counts buckets that a decision created.
    pub(crate) fn record_new_buckets(&self, buckets: u32) {
        self.core.record_new_buckets(buckets);
    }

    /// Its health.
    pub fn health(&self) -> Health {
        let last = self.core.last_contact.load(Ordering::Relaxed);
        Health {
            address: self.core.address.clone(),
            phase: self.core.breaker.phase(),
            connected: self.core.is_connected(),
            replica: self.core.replica(),
            policy: self.core.policy(),
            memory: self.core.memory_level(),
            last_contact: if last == 0 { None } else { Some(Time::from_nanos(last)) },
            trouble: self.core.breaker.why(),
        }
    }

    /// The estimated store time; `None` before the first contact.
    pub fn store_time(&self) -> Option<Time> {
        self.core.store_time()
    }

    /// Number of nodes that share the store, this one included; `None` before the first report.
    pub fn nodes(&self) -> Option<u64> {
        self.core.context.nodes.known()
    }

    /// Unregisters this node.
    pub async fn leave(&self) {
        watch::leave(&self.core).await;
    }

    /// A snapshot of its counters.
    pub fn stats(&self) -> PrimaryStats {
        let breaker = &self.core.breaker;
        self.core.counters.snapshot(self.core.queue.len(), breaker.phase(), breaker.transitions())
    }

    /// Ends the tasks and fails waiting calls. Calls in flight still complete.
    pub fn retire(&self) {
        self.core.retire();
    }

    /// Queues a call until it completes, fails or was sent twice.
    async fn perform<W, A>(
        &self,
        mut work: W,
        slot: u16,
        mut mode: SendMode,
        within: Span,
        queued: impl Fn(&Arc<PendingCall<W, A>>) -> QueuedCall,
    ) -> Result<A, Failure<W>> {
        let core = &self.core;
        let deadline = core.now().after(within);
        let mut resent = false;
        loop {
            if core.is_barred() {
                return Err(Failure::Redirected(Box::new(Redirected { redirect: Redirect::ReadOnly, work })));
            }
            let call = PendingCall::new(work, slot, mode, deadline);
            let queued = queued(&call);
            let retry = match core.wait(call, queued, within).await {
                Ok(answer) => return Ok(answer),
                Err(retry) => retry,
            };
            let late = core.now() >= deadline;
            work = match retry {
                Retry::Failed(why) => return Err(self.over(why)),
                Retry::Redirected(redirect, work) => {
                    return Err(Failure::Redirected(Box::new(Redirected { redirect, work })));
                }
                Retry::Expired(_) if resent || late => {
                    return Err(self.too_late("the call reached the store after its deadline"));
                }
                Retry::Suspect(_) if late => return Err(self.too_late(ErrorCode::Foreign.meaning())),
                Retry::TryAgain(_) if resent || late => return Err(self.too_late(ErrorCode::TryAgain.meaning())),
                Retry::Expired(work) => work,
                Retry::Suspect(work) => {
                    mode = SendMode::Alone;
                    work
                }
                Retry::TryAgain(work) => {
                    core.pause(SHORTLY).await;
                    work
                }
            };
            resent = true;
            increment(&core.counters.resent);
        }
    }

    fn over<W>(&self, why: StoreError) -> Failure<W> {
        if why.kind == StoreErrorKind::Indeterminate {
            increment(&self.core.counters.indeterminate);
        }
        Failure::Store(why)
    }

    fn too_late<W>(&self, what: &str) -> Failure<W> {
        Failure::Store(error(StoreErrorKind::Unavailable, what))
    }
}

impl PrimaryCore {
    /// Queues a call and waits for its result until its deadline.
    pub(super) async fn wait<W, A>(
        &self,
        call: Arc<PendingCall<W, A>>,
        queued: QueuedCall,
        within: Span,
    ) -> CallResult<W, A> {
        let now = self.now();
        if let Err(why) = self.breaker.pass(now) {
            increment(&self.counters.turned_away);
            return failed(why);
        }
        if let Err(full) = self.queue.push(queued) {
            return failed(self.rejected(full));
        }
        let waiter = WithdrawOnDrop(call);
        let left = waiter.0.deadline.since(now);
        let reply = match timeout(left.into(), waiter.0.answered()).await {
            Ok(reply) => return reply,
            Err(_) => self.wait_on(&waiter.0, within).await,
        };
        reply.unwrap_or_else(|| match waiter.0.give_up() {
            GaveUp::Answered(reply) => reply,
            GaveUp::Sent => failed(error(StoreErrorKind::Indeterminate, format!("no answer within {within}"))),
            GaveUp::Unsent => failed(self.withdrawn(within)),
        })
    }

    /// The deadline passed, but perhaps only because this node did not read the reply: a result that the store computed
    /// in time still counts. So replies that have arrived are read first, and a slow node waits as long again before it
    /// decides what the store has probably decided already. The engine's own deadline bounds this wait.
    async fn wait_on<W, A>(&self, call: &PendingCall<W, A>, within: Span) -> Option<CallResult<W, A>> {
        let more = if self.is_behind() && call.is_sent() { within } else { Span::ZERO };
        yield_now().await;
        timeout(more.into(), call.answered()).await.ok()
    }

    fn rejected(&self, full: QueueError) -> StoreError {
        match full {
            QueueError::Saturated => {
                increment(&self.counters.saturated);
                error(StoreErrorKind::Saturated, format!("{} requests are waiting", self.context.config.max_waiting))
            }
            QueueError::Retired => error(StoreErrorKind::Unavailable, "the server is no longer used"),
        }
    }

    fn withdrawn(&self, within: Span) -> StoreError {
        increment(&self.counters.withdrawn);
        let what = if self.is_connected() { "the connection was busy" } else { "there was no connection" };
        let why = error(StoreErrorKind::Unavailable, format!("{what} for {within}"));
        if self.is_patient(within) {
            self.late(&why);
        }
        why
    }
}

fn failed<W, A>(why: StoreError) -> CallResult<W, A> {
    Err(Retry::Failed(why))
}

impl ManagedServer for Primary {
    fn address(&self) -> &HostPort {
        Primary::address(self)
    }

    /// Its own keys are placed in one of its slots.
    fn assign_slots(&self, is_served: &dyn Fn(u16) -> bool) {
        if let Some(identity) = BucketKey::identity_in(is_served) {
            self.core.set_identity(identity);
        }
    }

    fn retire(&self) {
        Primary::retire(self);
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        self.retire();
    }
}
