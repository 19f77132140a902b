//! The task behind a connection: connects, takes everything that waits, writes it in one go, reads as many replies,
//! answers, and takes what has come meanwhile. Nothing waits for company.
//!
//! While a flight is under way, what comes waits for it to land: that is what joins questions. If that takes longer than
//! [`OVERTAKE`], the way is long rather than the server busy, and the next one is sent behind it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::select;
use tokio::task::yield_now;
use tokio::time::timeout;
use tollgate_core::{Span, Time};
use tollgate_resp::RespValue;
use tollgate_store::{StoreErrorKind, random};
use tracing::debug;

use super::call::{Call, Collector};
use super::core::Core;
use super::flight::Flight;
use super::job::Job;
use crate::client::backoff::Backoff;
use crate::client::connection::{Connection, Greeting};
use crate::client::failure::{Redirect, error};
use crate::client::pending::{GaveUp, Manner, Setback, Ticket};
use crate::store::script::{self, Script};
use crate::store::stats::{Counters, many, one};

/// Jobs of one flight: what is more waits for the next.
const JOBS_MAX: usize = 512;
/// A flight that has not landed by then no longer keeps the next one back.
const OVERTAKE: Span = Span::from_millis(1);
/// Flights under way at once.
const FLIGHTS_MAX: usize = 32;
/// How often a driver looks whether what is late should still be waited for.
const DRAIN_EVERY: Span = Span::from_millis(10);
/// How often a driver that does not probe looks whether the breaker is still open.
const LOOK_EVERY: Span = Span::from_millis(20);

/// Keeps one connection, until the primary retires. The first driver probes while the breaker is open.
pub(super) async fn drive(core: Arc<Core>, number: usize) {
    let mut backoff = Backoff::default();
    while !core.is_over() {
        let now = core.now();
        let mut at = backoff.next(now, random::fast());
        if let Some(probe_at) = core.gate.probe_at() {
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
                one(&core.counters.connect_failures);
                if let Some(refusal) = why.refusal() {
                    core.counters.refused(refusal);
                }
                debug!(store = %core.address, reason = %why, "no connection");
                core.not_connected(&why);
            }
        }
    }
}

/// Why a connection is of no use any more.
enum Lost {
    Broken(String),
    Silent(String),
}

/// One connection at work.
struct Driver {
    core: Arc<Core>,
    number: usize,
    connection: Connection,
    /// The hash of each script.
    hashes: Vec<Bytes>,
    jobs: Vec<Job>,
    collected: Vec<Call>,
    out: Vec<u8>,
    /// Where each call ends in `out`.
    ends: Vec<usize>,
    /// What is under way, oldest first.
    flights: VecDeque<Flight>,
    /// Replies of the oldest call, until all are in.
    replies: Vec<RespValue>,
    /// True until something was done with the connection.
    fresh: bool,
    /// Jobs of the last flight.
    crowd: usize,
    /// When the last reply came.
    heard: Time,
}

impl Driver {
    fn new(core: Arc<Core>, number: usize, connection: Connection, greeting: Greeting) -> Driver {
        let (sent, received, told) = greeting.clock;
        core.observe_time(sent, received, told);
        Driver {
            core,
            number,
            connection,
            hashes: greeting.hashes,
            jobs: Vec::new(),
            collected: Vec::new(),
            out: Vec::new(),
            ends: Vec::new(),
            flights: VecDeque::new(),
            replies: Vec::new(),
            fresh: true,
            crowd: 0,
            heard: received,
        }
    }

    /// Works until the connection is of no use any more, or the primary retires.
    async fn serve(&mut self, backoff: &mut Backoff) {
        let core = self.core.clone();
        while !(core.is_over() && self.flights.is_empty()) {
            if let Err(lost) = self.step().await {
                self.give_up(lost);
                break;
            }
            backoff.worked();
        }
        core.queue.take(self.number, 0, &mut self.jobs);
    }

    async fn step(&mut self) -> Result<(), Lost> {
        if !self.flights.is_empty() {
            return self.advance().await;
        }
        match self.core.gate.probe_at() {
            Some(at) if self.number == 0 => self.probe(at).await,
            Some(_) => self.idle(LOOK_EVERY).await,
            None => self.work().await,
        }
    }

    /// Nothing is under way: waits for work and sends it.
    async fn work(&mut self) -> Result<(), Lost> {
        let core = self.core.clone();
        select! {
            biased;
            () = core.queue.work_or_call(self.number) => {}
            broken = self.connection.idle() => return Err(Lost::Broken(broken.to_string())),
        }
        if self.crowd > 1 {
            // The first of those who were just answered is back, the others are about to be: let them run, or the
            // flights would take turns with one question and with all the others.
            yield_now().await;
        }
        self.take_off().await
    }

    /// Something is under way: reads its replies, and sends more if that takes long.
    ///
    /// A reply that does not come in time ends the connection, unless this node itself is late. Then what is under way is
    /// waited for, and nothing is sent until all of it has come: if a reply was lost on the way, one will be missing.
    async fn advance(&mut self) -> Result<(), Lost> {
        let core = self.core.clone();
        let now = core.now();
        let (Some(oldest), Some(newest)) = (self.flights.front(), self.flights.back()) else { return Ok(()) };
        let (until, overtake, expected) = (oldest.until, newest.sent.after(OVERTAKE), oldest.reply_bytes());
        let room = self.flights.len() < FLIGHTS_MAX && until > now && !core.is_over() && !core.is_open();
        let waiting = room && core.queue.len() > 0;
        if waiting && now >= overtake {
            return self.take_off().await;
        }
        // A short timer costs as much as the rest of a round trip on some machines: only who has work sets one.
        let wake = match (waiting, until > now) {
            (true, _) => until.min(overtake),
            (false, true) => until,
            (false, false) => now.after(DRAIN_EVERY),
        };
        let reply = select! {
            biased;
            reply = timeout(wake.since(now).into(), self.connection.reply_of(expected)) => reply,
            () = core.queue.work_or_call(self.number), if room && !waiting => return Ok(()),
        };
        let reply = match reply {
            Err(_) if core.now() >= until => {
                // Whatever has arrived is read before anything is called late.
                yield_now().await;
                timeout(Duration::ZERO, self.connection.reply_of(expected)).await
            }
            reply => reply,
        };
        match reply {
            Ok(reply) => self.receive(reply.map_err(|broken| Lost::Broken(broken.to_string()))?).await,
            Err(_) if core.now() >= until => self.overdue(),
            Err(_) => Ok(()),
        }
    }

    /// The oldest flight is late: whether to wait for it.
    fn overdue(&mut self) -> Result<(), Lost> {
        let (core, now) = (&self.core, self.core.now());
        let Some(oldest) = self.flights.front_mut() else { return Ok(()) };
        let silent_until = self.heard.max(oldest.until).after(core.shared.config.connect_timeout);
        if core.is_open() || now >= silent_until || !core.is_behind() {
            return Err(Lost::Silent(format!("no answer within {}", now.since(oldest.sent))));
        }
        oldest.note_late(core);
        Ok(())
    }

    /// Waits, and watches the connection.
    async fn idle(&mut self, span: Span) -> Result<(), Lost> {
        let core = self.core.clone();
        select! {
            () = core.pause(span) => Ok(()),
            broken = self.connection.idle() => Err(Lost::Broken(broken.to_string())),
        }
    }

    /// Asks the real script, when it is time to, whether the server is well again.
    async fn probe(&mut self, at: Time) -> Result<(), Lost> {
        let core = self.core.clone();
        let now = core.now();
        // A connection that was made while callers lost their patience is good news: no need to wait any longer.
        if at > now && !std::mem::replace(&mut self.fresh, false) {
            return self.idle(at.since(now)).await;
        }
        let Some((question, slot)) = core.probe_question() else { return Ok(()) };
        one(&core.counters.probes);
        let ticket = Ticket::new(question, slot, Manner::Joined, now.after(core.shared.config.within));
        self.jobs.push(Job::Ask(ticket.clone()));
        let mut result = self.send().await;
        while result.is_ok() && !self.flights.is_empty() {
            result = self.advance().await;
        }
        // Who answers that somebody else has the key is well.
        let good = matches!(
            ticket.give_up(),
            GaveUp::Answered(Ok(_) | Err(Setback::Redirected(Redirect::Moved { .. } | Redirect::Ask { .. }, _)))
        );
        core.probed(good);
        result
    }

    /// Sends what waits.
    async fn take_off(&mut self) -> Result<(), Lost> {
        self.core.queue.take(self.number, JOBS_MAX, &mut self.jobs);
        self.crowd = self.jobs.len();
        self.send().await
    }

    /// Makes calls of the jobs and writes them.
    async fn send(&mut self) -> Result<(), Lost> {
        let core = self.core.clone();
        let now = core.now();
        let estimate = *core.estimate.lock();
        let collector = Collector { clustered: core.shared.is_clustered(), now, estimate: &estimate };
        for job in self.jobs.drain(..) {
            collector.add(job, &mut self.collected);
        }
        if self.collected.is_empty() {
            return Ok(());
        }
        self.clear();
        let mut calls = VecDeque::with_capacity(self.collected.len());
        for call in self.collected.drain(..) {
            count(&core.counters, &call);
            let hash = call.script().and_then(|script| self.hashes.get(script.index()));
            call.encode(script::Call::Sha(hash.map_or(&[], |hash| hash)), &mut self.out);
            self.ends.push(self.out.len());
            calls.push_back(call);
        }
        self.write(Flight::new(calls, now, &core, false)).await
    }

    /// Sends calls again whose script the server did not know: the first of each with the text, behind which the others
    /// find it loaded.
    async fn send_again(&mut self, calls: VecDeque<Call>, before: &[u64]) -> Result<(), Lost> {
        let core = self.core.clone();
        let mut loading = [false; Script::ALL.len()];
        self.clear();
        for call in &calls {
            let place = call.script().map_or(0, Script::index);
            let how = if core.is_first_to_reload(place, before, &mut loading) {
                one(&core.counters.reloads);
                script::Call::Text
            } else {
                script::Call::Sha(self.hashes.get(place).map_or(&[], |hash| hash))
            };
            call.encode(how, &mut self.out);
            self.ends.push(self.out.len());
        }
        self.write(Flight::new(calls, core.now(), &core, true)).await
    }

    fn clear(&mut self) {
        self.out.clear();
        self.ends.clear();
    }

    async fn write(&mut self, mut flight: Flight) -> Result<(), Lost> {
        one(&self.core.counters.flights);
        let (mut written, left) = (0, flight.until.since(flight.sent));
        let wrote = timeout(left.into(), self.connection.write(&self.out, &mut written)).await;
        flight.wrote(self.ends.iter().filter(|end| **end <= written).count());
        self.flights.push_back(flight);
        match wrote {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Lost::Broken(format!("the connection is gone: {error}"))),
            Err(_) => Err(Lost::Silent(format!("nothing could be sent within {left}"))),
        }
    }

    /// A reply is in.
    async fn receive(&mut self, reply: RespValue) -> Result<(), Lost> {
        let core = self.core.clone();
        self.heard = core.now();
        let Some(flight) = self.flights.front_mut() else {
            return Err(Lost::Broken("it speaks without being asked".into()));
        };
        self.replies.push(reply);
        if flight.expects().is_some_and(|expected| self.replies.len() < expected) {
            return Ok(());
        }
        let landed = flight.land(&mut self.replies, &core);
        self.replies.clear();
        landed.map_err(|what| Lost::Broken(format!("the server is out of step: {what}")))?;
        if flight.expects().is_some() {
            return Ok(());
        }
        let Some(flight) = self.flights.pop_front() else { return Ok(()) };
        let before = flight.reloads;
        let forgotten = flight.end(&core);
        if forgotten.is_empty() { Ok(()) } else { self.send_again(forgotten, &before).await }
    }

    /// Fails everything without a reply.
    fn give_up(&mut self, lost: Lost) {
        let core = &self.core;
        one(&core.counters.broken);
        let (Lost::Broken(why) | Lost::Silent(why)) = &lost;
        debug!(store = %core.address, reason = why, "connection given up");
        let under_way = !self.flights.is_empty();
        self.flights.drain(..).for_each(|flight| flight.abandon(why));
        let failure = error(StoreErrorKind::Unavailable, why.as_str());
        match lost {
            _ if !under_way => {}
            Lost::Broken(_) => core.failed(&failure),
            Lost::Silent(_) => core.late(&failure),
        }
    }
}

fn count(counters: &Counters, call: &Call) {
    match call {
        Call::Batch { .. } => {
            one(&counters.script_calls);
            many(&counters.questions, call.questions());
            counters.batch(call.questions());
        }
        Call::Returns { .. } => {
            one(&counters.script_calls);
            one(&counters.returns);
        }
        Call::Commands { .. } => one(&counters.commands),
    }
}
