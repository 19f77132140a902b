//! The task that owns a connection: connects, takes all waiting calls, writes them at once, reads their replies,
//! completes the calls and takes those that arrived meanwhile. It never delays a call to fill a batch.
//!
//! While a batch is in flight, new calls wait for it: that is what batches them. If it takes longer than [`OVERTAKE`],
//! the network rather than the server is slow, and the next batch is sent behind it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::select;
use tokio::task::yield_now;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tollgate_core::{Span, Time};
use tollgate_resp::RespValue;
use tollgate_store::{StoreErrorKind, random};
use tracing::debug;

use super::call::{BatchBuilder, PipelinedCall, QueuedCall};
use super::core::PrimaryCore;
use super::in_flight::{Ended, InFlight};
use crate::client::backoff::Backoff;
use crate::client::connection::{Handshake, RedisConnection};
use crate::client::failure::{Redirect, error};
use crate::client::queue::{GaveUp, PendingCall, Retry, SendMode};
use crate::store::script::{self, Script};
use crate::store::stats::{Counters, add, increment};

/// Calls per batch; further ones wait for the next.
const BATCH_CALLS_MAX: usize = 512;
/// A batch in flight for longer than this no longer holds back the next one.
const OVERTAKE: Span = Span::from_millis(1);
/// Batches in flight at once.
const IN_FLIGHT_MAX: usize = 32;
/// How often a driver checks whether to wait any longer for late replies.
const DRAIN_EVERY: Span = Span::from_millis(10);
/// Longest time to which the timer is set.
const TIMER_MAX: Duration = Duration::from_secs(86_400);
/// How often a driver that does not probe checks whether the breaker is still open.
const LOOK_EVERY: Span = Span::from_millis(20);

/// Keeps one connection open until the primary retires. Driver 0 probes while the breaker is open.
pub(super) async fn drive(core: Arc<PrimaryCore>, number: usize) {
    let mut backoff = Backoff::default();
    while !core.is_over() {
        let now = core.now();
        let mut at = backoff.next(now, random::fast());
        if let Some(probe_at) = core.breaker.probe_at() {
            at = if number == 0 { at.max(probe_at) } else { now.after(LOOK_EVERY) };
        }
        core.pause(at.since(now)).await;
        if core.is_over() || (number != 0 && core.is_open()) {
            continue;
        }
        backoff.began(core.now());
        match core.connect().await {
            Ok((connection, greeting)) => {
                core.connected.fetch_add(1, Ordering::Relaxed);
                Driver::new(core.clone(), number, connection, greeting).serve(&mut backoff).await;
                core.connected.fetch_sub(1, Ordering::Relaxed);
            }
            Err(why) => {
                increment(&core.counters.connect_failures);
                if let Some(code) = why.code() {
                    core.counters.count_error(code);
                }
                debug!(store = %core.address, reason = %why, "no connection");
                core.not_connected(&why);
            }
        }
    }
}

/// Why a connection cannot be used any longer.
enum Lost {
    Broken(String),
    Silent(String),
}

/// A driver with an open connection.
struct Driver {
    core: Arc<PrimaryCore>,
    number: usize,
    connection: RedisConnection,
    /// The hash of each script.
    hashes: Vec<Bytes>,
    queued: Vec<QueuedCall>,
    calls_to_send: Vec<PipelinedCall>,
    out: Vec<u8>,
    /// Where each call ends in `out`.
    ends: Vec<usize>,
    /// One timer for all waits: moving a deadline back takes no lock, a new timer takes two.
    timer: Pin<Box<Sleep>>,
    /// An empty list for the calls of the next batch.
    spare: VecDeque<PipelinedCall>,
    /// Batches in flight, oldest first.
    in_flight: VecDeque<InFlight>,
    /// Replies of the oldest call, until they are complete.
    replies: Vec<RespValue>,
    /// True until the connection was used.
    fresh: bool,
    /// Number of calls in the last batch.
    last_batch_len: usize,
    /// When the last reply arrived.
    last_reply: Time,
}

impl Driver {
    fn new(core: Arc<PrimaryCore>, number: usize, connection: RedisConnection, greeting: Handshake) -> Driver {
        let (sent, received, told) = greeting.clock;
        core.observe_time(sent, received, told);
        Driver {
            core,
            number,
            connection,
            hashes: greeting.hashes,
            queued: Vec::new(),
            calls_to_send: Vec::new(),
            out: Vec::new(),
            ends: Vec::new(),
            timer: Box::pin(sleep(TIMER_MAX)),
            spare: VecDeque::new(),
            in_flight: VecDeque::new(),
            replies: Vec::new(),
            fresh: true,
            last_batch_len: 0,
            last_reply: received,
        }
    }

    /// Serves calls until the connection fails or the primary retires.
    async fn serve(&mut self, backoff: &mut Backoff) {
        let core = self.core.clone();
        while !(core.is_over() && self.in_flight.is_empty()) {
            if let Err(lost) = self.step().await {
                self.give_up(lost);
                break;
            }
            backoff.worked();
        }
        core.queue.take(self.number, 0, &mut self.queued);
    }

    async fn step(&mut self) -> Result<(), Lost> {
        if !self.in_flight.is_empty() {
            return self.advance().await;
        }
        match self.core.breaker.probe_at() {
            Some(at) if self.number == 0 => self.probe(at).await,
            Some(_) => self.idle(LOOK_EVERY).await,
            None => self.work().await,
        }
    }

    /// Nothing is in flight: waits for calls and sends them.
    async fn work(&mut self) -> Result<(), Lost> {
        let core = self.core.clone();
        select! {
            biased;
            () = core.queue.wait_for_calls(self.number) => {}
            broken = self.connection.idle() => return Err(Lost::Broken(broken.to_string())),
        }
        if self.last_batch_len > 1 {
            // The first of the callers that just got their answers is back, and the others are about to be. Let them
            // run first, or batches would alternate between one call and all the others.
            yield_now().await;
        }
        self.send_batch().await
    }

    /// A batch is in flight: reads its replies, and sends the next batch if that takes long.
    ///
    /// A late reply ends the connection, unless this node itself is late. Then the driver waits for all replies in
    /// flight and sends nothing meanwhile: if the network lost a reply, one will be missing.
    async fn advance(&mut self) -> Result<(), Lost> {
        let core = self.core.clone();
        let now = core.now();
        let (Some(oldest), Some(newest)) = (self.in_flight.front(), self.in_flight.back()) else { return Ok(()) };
        let (until, overtake, expected) = (oldest.until, newest.sent.after(OVERTAKE), oldest.reply_bytes());
        let room = self.in_flight.len() < IN_FLIGHT_MAX && until > now && !core.is_over() && !core.is_open();
        let waiting = room && core.queue.len() > 0;
        if waiting && now >= overtake {
            return self.send_batch().await;
        }
        // On some machines a short timer costs as much as the rest of a round trip: set one only if calls wait.
        let wake = match (waiting, until > now) {
            (true, _) => until.min(overtake),
            (false, true) => until,
            (false, false) => now.after(DRAIN_EVERY),
        };
        self.timer.as_mut().reset(Instant::now() + Duration::from(wake.since(now)).min(TIMER_MAX));
        let reply = select! {
            biased;
            reply = self.connection.reply_of(expected) => Some(reply),
            () = &mut self.timer => None,
            () = core.queue.wait_for_calls(self.number), if room && !waiting => return Ok(()),
        };
        let reply = match reply {
            None if core.now() >= until => {
                // Read what has arrived before calling it late.
                yield_now().await;
                timeout(Duration::ZERO, self.connection.reply_of(expected)).await.ok()
            }
            reply => reply,
        };
        match reply {
            Some(reply) => self.receive(reply.map_err(|broken| Lost::Broken(broken.to_string()))?).await,
            None if core.now() >= until => self.overdue(),
            None => Ok(()),
        }
    }

    /// The oldest batch is late: decides whether to wait for it.
    fn overdue(&mut self) -> Result<(), Lost> {
        let (core, now) = (&self.core, self.core.now());
        let Some(oldest) = self.in_flight.front_mut() else { return Ok(()) };
        let silent_until = self.last_reply.max(oldest.until).after(core.context.config.connect_timeout);
        if core.is_open() || now >= silent_until || !core.is_behind() {
            return Err(Lost::Silent(format!("no answer within {}", now.since(oldest.sent))));
        }
        oldest.note_late(core);
        Ok(())
    }

    /// Waits, and notices when the connection ends.
    async fn idle(&mut self, span: Span) -> Result<(), Lost> {
        let core = self.core.clone();
        select! {
            () = core.pause(span) => Ok(()),
            broken = self.connection.idle() => Err(Lost::Broken(broken.to_string())),
        }
    }

    /// Runs the real script, when a probe is due, to learn whether the server recovered.
    async fn probe(&mut self, at: Time) -> Result<(), Lost> {
        let core = self.core.clone();
        let now = core.now();
        // A new connection is good news: probe at once.
        if at > now && !std::mem::replace(&mut self.fresh, false) {
            return self.idle(at.since(now)).await;
        }
        let Some((request, slot)) = core.probe_request() else { return Ok(()) };
        increment(&core.counters.probes);
        let call = PendingCall::new(request, slot, SendMode::Joined, now.after(core.context.config.within));
        self.queued.push(QueuedCall::Ask(call.clone()));
        let mut result = self.send().await;
        while result.is_ok() && !self.in_flight.is_empty() {
            result = self.advance().await;
        }
        // A MOVED or ASK reply proves that the server is healthy.
        let good = matches!(
            call.give_up(),
            GaveUp::Answered(Ok(_) | Err(Retry::Redirected(Redirect::Moved { .. } | Redirect::Ask { .. }, _)))
        );
        core.probed(good);
        result
    }

    /// Sends the waiting calls.
    async fn send_batch(&mut self) -> Result<(), Lost> {
        self.core.queue.take(self.number, BATCH_CALLS_MAX, &mut self.queued);
        self.last_batch_len = self.queued.len();
        self.send().await
    }

    /// Builds batches of the queued calls and writes them.
    async fn send(&mut self) -> Result<(), Lost> {
        let core = self.core.clone();
        let now = core.now();
        let estimate = *core.estimate.lock();
        let builder = BatchBuilder { clustered: core.context.is_clustered(), now, estimate: &estimate };
        for call in self.queued.drain(..) {
            builder.add(call, &mut self.calls_to_send);
        }
        if self.calls_to_send.is_empty() {
            return Ok(());
        }
        self.clear();
        let mut calls = std::mem::take(&mut self.spare);
        for call in self.calls_to_send.drain(..) {
            count(&core.counters, &call);
            let hash = call.script().and_then(|script| self.hashes.get(script.index()));
            call.encode(script::ScriptCall::Sha(hash.map_or(&[], |hash| hash)), &mut self.out);
            self.ends.push(self.out.len());
            calls.push_back(call);
        }
        self.write(InFlight::new(calls, now, &core, false)).await
    }

    /// Sends calls again whose script the server did not know: the first call of each script with its text, which loads
    /// it for the others.
    async fn send_again(&mut self, calls: VecDeque<PipelinedCall>, before: &[u64]) -> Result<(), Lost> {
        let core = self.core.clone();
        let mut loading = [false; Script::ALL.len()];
        self.clear();
        for call in &calls {
            let script = call.script().map_or(0, Script::index);
            let how = if core.is_first_to_reload(script, before, &mut loading) {
                increment(&core.counters.reloads);
                script::ScriptCall::Text
            } else {
                script::ScriptCall::Sha(self.hashes.get(script).map_or(&[], |hash| hash))
            };
            call.encode(how, &mut self.out);
            self.ends.push(self.out.len());
        }
        self.write(InFlight::new(calls, core.now(), &core, true)).await
    }

    fn clear(&mut self) {
        self.out.clear();
        self.ends.clear();
    }

    async fn write(&mut self, mut batch: InFlight) -> Result<(), Lost> {
        increment(&self.core.counters.flushes);
        let (mut written, left) = (0, batch.until.since(batch.sent));
        let wrote = timeout(left.into(), self.connection.write(&self.out, &mut written)).await;
        batch.wrote(self.ends.iter().filter(|end| **end <= written).count());
        self.in_flight.push_back(batch);
        match wrote {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Lost::Broken(format!("the connection is gone: {error}"))),
            Err(_) => Err(Lost::Silent(format!("nothing could be sent within {left}"))),
        }
    }

    /// Handles one reply.
    async fn receive(&mut self, reply: RespValue) -> Result<(), Lost> {
        let core = self.core.clone();
        self.last_reply = core.now();
        let Some(batch) = self.in_flight.front_mut() else {
            return Err(Lost::Broken("unexpected data".into()));
        };
        self.replies.push(reply);
        if batch.expects().is_some_and(|expected| self.replies.len() < expected) {
            return Ok(());
        }
        let completed = batch.complete(&mut self.replies, &core);
        self.replies.clear();
        completed.map_err(|what| Lost::Broken(format!("the server is out of step: {what}")))?;
        if batch.expects().is_some() {
            return Ok(());
        }
        let Some(batch) = self.in_flight.pop_front() else { return Ok(()) };
        let before = batch.reloads;
        let Ended { unknown_script, spare } = batch.end(&core);
        self.spare = spare;
        if unknown_script.is_empty() { Ok(()) } else { self.send_again(unknown_script, &before).await }
    }

    /// Fails all calls in flight.
    fn give_up(&mut self, lost: Lost) {
        let core = &self.core;
        increment(&core.counters.broken);
        let (Lost::Broken(why) | Lost::Silent(why)) = &lost;
        debug!(store = %core.address, reason = why, "connection given up");
        let under_way = !self.in_flight.is_empty();
        self.in_flight.drain(..).for_each(|batch| batch.abandon(why));
        let failure = error(StoreErrorKind::Unavailable, why.as_str());
        match lost {
            _ if !under_way => {}
            Lost::Broken(_) => core.failed(&failure),
            Lost::Silent(_) => core.late(&failure),
        }
    }
}

fn count(counters: &Counters, call: &PipelinedCall) {
    match call {
        PipelinedCall::Batch { .. } => {
            increment(&counters.script_calls);
            add(&counters.requests, call.requests());
            counters.record_batch(call.requests());
        }
        PipelinedCall::Returns { .. } => {
            increment(&counters.script_calls);
            increment(&counters.returns);
        }
        PipelinedCall::Commands { .. } => increment(&counters.commands),
    }
}
