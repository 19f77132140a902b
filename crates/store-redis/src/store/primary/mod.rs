//! One primary server: everything that is asked of it goes through here, is sent at most once, and is answered or given
//! up by its deadline.
//!
//! ```text
//! ask ─▶ gate (breaker) ─▶ queue ─▶ driver ─▶ one flush of calls ─▶ connection ─▶ replies ─▶ tickets ─▶ ask
//!                          bounded   takes all     joined where they may be        in order
//! ```

mod core;
mod driver;
mod in_flight;
pub(crate) mod memory;
mod pipelined_call;
mod queued_call;
mod sweep;
mod watch;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tollgate_core::{Receipt, Span, Time};
use tollgate_resp::RespValue;
use tollgate_store::{StoreError, StoreErrorKind};

use self::core::PrimaryCore;
use self::memory::MemoryLevel;
use self::queued_call::{PendingAsk, PendingReturn, QueuedCall};
use crate::client::address::HostPort;
use crate::client::breaker::Phase;
use crate::client::context::RedisContext;
use crate::client::failure::{Failure, Redirect, Redirected, Refusal, error, meaning_of};
use crate::client::pending::{PendingCall, Retry, SendMode};
use crate::client::topology::ManagedServer;
use crate::store::key::BucketKey;
use crate::store::script::{ScriptAnswer, ScriptRequest};
use crate::store::stats::{PrimaryStats, increment};

/// How long "shortly" is, for a slot that is just moving.
const SHORTLY: Span = Span::from_millis(2);

/// One primary, and the tasks that keep its connections. Dropping it ends them.
pub struct Primary {
    core: Arc<PrimaryCore>,
}

/// How a primary is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Which one.
    pub address: HostPort,
    /// What its breaker lets pass.
    pub phase: Phase,
    /// Whether a connection to it is open.
    pub connected: bool,
    /// True if it turned out to be a replica.
    pub replica: bool,
    /// What it evicts when its memory is full, such as `noeviction`; empty if not known.
    pub policy: String,
    /// How much of its memory is in use.
    pub memory: MemoryLevel,
    /// When it last replied, by this node's clock.
    pub last_contact: Option<Time>,
    /// Why its breaker is not closed.
    pub trouble: Option<String>,
}

impl Primary {
    /// Starts the tasks of this primary on the present runtime.
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

    /// Where it is.
    pub fn address(&self) -> &HostPort {
        &self.core.address
    }

    /// Asks a question whose keys are in this slot, and waits for the answer no longer than `within`.
    pub async fn ask(
        &self,
        question: ScriptRequest,
        slot: u16,
        within: Span,
    ) -> Result<ScriptAnswer, Failure<ScriptRequest>> {
        let job = |ticket: &Arc<PendingAsk>| QueuedCall::Ask(ticket.clone());
        self.perform(question, slot, SendMode::Joined, within, job).await
    }

    /// Asks a question that another primary said to ask here, for this once.
    pub async fn ask_asking(
        &self,
        question: ScriptRequest,
        slot: u16,
        within: Span,
    ) -> Result<ScriptAnswer, Failure<ScriptRequest>> {
        let job = |ticket: &Arc<PendingAsk>| QueuedCall::Ask(ticket.clone());
        self.perform(question, slot, SendMode::Asking, within, job).await
    }

    /// Asks a question that changes nothing, with the script that decides.
    pub async fn probe(&self, within: Span) -> Result<(), StoreError> {
        let Some((question, slot)) = self.core.probe_question() else { return Ok(()) };
        self.ask(question, slot, within).await.map(|_| ()).map_err(Failure::into_error)
    }

    /// Gives receipts of one slot back; answers how many of them gave something back.
    pub async fn give_back(
        &self,
        receipts: Vec<Receipt>,
        slot: u16,
        within: Span,
    ) -> Result<usize, Failure<Vec<Receipt>>> {
        let job = |ticket: &Arc<PendingReturn>| QueuedCall::GiveBack(ticket.clone());
        self.perform(receipts, slot, SendMode::Joined, within, job).await
    }

    /// [`give_back`](Primary::give_back) where another primary said to, for this once.
    pub async fn give_back_asking(
        &self,
        receipts: Vec<Receipt>,
        slot: u16,
        within: Span,
    ) -> Result<usize, Failure<Vec<Receipt>>> {
        let job = |ticket: &Arc<PendingReturn>| QueuedCall::GiveBack(ticket.clone());
        self.perform(receipts, slot, SendMode::Asking, within, job).await
    }

    /// Sends a plain command. Errors of the server are failures.
    pub async fn command(&self, parts: &[&[u8]], within: Span) -> Result<RespValue, Failure> {
        let replies = self.core.pipeline(&[parts], within).await.map_err(Failure::Store)?;
        let Some(reply) = replies.into_iter().next() else {
            return Err(Failure::Store(error(StoreErrorKind::Indeterminate, "no reply")));
        };
        let Some(refusal) = Refusal::of(&reply) else { return Ok(reply) };
        self.core.counters.count_refusal(refusal);
        if let Some(redirect) = Redirect::of(refusal, &reply, &self.core.address.host) {
            return Err(Failure::Redirected(Box::new(Redirected { redirect, work: () })));
        }
        let kind = refusal.treatment().kind().unwrap_or(StoreErrorKind::Unavailable);
        Err(Failure::Store(error(kind, meaning_of(refusal, &reply))))
    }

    /// Sends plain commands in one go; one value per command, errors of the server among them.
    pub async fn pipeline(&self, commands: &[&[&[u8]]], within: Span) -> Result<Vec<RespValue>, StoreError> {
        self.core.pipeline(commands, within).await
    }

    /// How much memory it has left.
    pub(crate) fn memory_level(&self) -> MemoryLevel {
        self.core.memory_level()
    }

    /// Counts buckets that a decision made.
    pub(crate) fn record_new_buckets(&self, buckets: u32) {
        self.core.record_new_buckets(buckets);
    }

    /// How it is.
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

    /// The store's time, about; `None` before the first contact.
    pub fn store_time(&self) -> Option<Time> {
        self.core.store_time()
    }

    /// How many nodes share the store, this one included, as last heard; `None` before that.
    pub fn nodes(&self) -> Option<u64> {
        self.core.context.nodes.known()
    }

    /// Tells the other nodes that this one leaves.
    pub async fn leave(&self) {
        watch::leave(&self.core).await;
    }

    /// The figures of now.
    pub fn stats(&self) -> PrimaryStats {
        self.core.counters.snapshot(self.core.queue.len(), self.core.breaker.phase())
    }

    /// Ends the tasks, and fails what waits. What is under way is still answered.
    pub fn retire(&self) {
        self.core.retire();
    }

    /// Puts work into the queue until it is done, is over, or was sent twice.
    async fn perform<W, A>(
        &self,
        mut work: W,
        slot: u16,
        mut mode: SendMode,
        within: Span,
        job: impl Fn(&Arc<PendingCall<W, A>>) -> QueuedCall,
    ) -> Result<A, Failure<W>> {
        let core = &self.core;
        let deadline = core.now().after(within);
        let mut resent = false;
        loop {
            if core.is_barred() {
                return Err(Failure::Redirected(Box::new(Redirected { redirect: Redirect::ReadOnly, work })));
            }
            let ticket = PendingCall::new(work, slot, mode, deadline);
            let queued = job(&ticket);
            let retry = match core.wait(ticket, queued, within).await {
                Ok(answer) => return Ok(answer),
                Err(retry) => retry,
            };
            let late = core.now() >= deadline;
            work = match retry {
                Retry::Failed(why) => return Err(self.over(why)),
                Retry::Redirected(redirect, work) => {
                    return Err(Failure::Redirected(Box::new(Redirected { redirect, work })));
                }
                Retry::Expired(_) if resent || late => return Err(self.too_late("it came to the store too late")),
                Retry::Suspect(_) if late => return Err(self.too_late(Refusal::Foreign.meaning())),
                Retry::TryAgain(_) if resent || late => return Err(self.too_late(Refusal::TryAgain.meaning())),
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

impl ManagedServer for Primary {
    fn address(&self) -> &HostPort {
        Primary::address(self)
    }

    /// Its own keys are put into one of its slots.
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
