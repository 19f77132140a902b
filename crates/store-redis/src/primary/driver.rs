//! The task behind a connection: connects, takes everything that waits, writes it in one go, reads as many replies,
//! answers, and takes what has come meanwhile. Nothing waits for company.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::select;
use tokio::time::timeout;
use tollgate_core::{Span, Time};
use tollgate_store::{StoreError, StoreErrorKind};
use tracing::debug;

use super::backoff::Backoff;
use super::call::{Call, Collector, Settled};
use super::core::Core;
use super::queue::Job;
use super::ticket::{GaveUp, Setback, Ticket};
use crate::connection::{Broken, Connection};
use crate::failure::{Redirect, Refusal, error};
use crate::script::{self, Script};
use crate::stats::{many, one};
use crate::{lot, stats};

/// Jobs of one flush: what is more waits for the next.
const JOBS_MAX: usize = 512;
/// How often a driver that does not probe looks whether the breaker is still open.
const LOOK_EVERY: Span = Span::from_millis(20);

/// Keeps one connection, until the primary retires. The first driver probes while the breaker is open.
pub(super) async fn drive(core: Arc<Core>, number: usize) {
    let mut backoff = Backoff::default();
    while !core.is_over() {
        let now = core.now();
        let mut at = backoff.next(now, lot::spread());
        if let Some(probe_at) = core.gate.probe_at() {
            at = if number == 0 { at.max(probe_at) } else { now.after(LOOK_EVERY) };
        }
        if at > now {
            // Whatever is learned meanwhile, such as an earlier probe, is looked at again.
            core.pause(at.since(now)).await;
            if number != 0 && core.is_open() {
                continue;
            }
        }
        if core.is_over() {
            break;
        }
        backoff.began(core.now());
        match core.connect().await {
            Ok((connection, greeting)) => {
                let (sent, received, told) = greeting.clock;
                core.observe_time(sent, received, told);
                core.connected.fetch_add(1, Ordering::Relaxed);
                let mut driver = Driver::new(core.clone(), number, connection, greeting.hashes);
                driver.serve(&mut backoff).await;
                core.connected.fetch_sub(1, Ordering::Relaxed);
            }
            Err(why) => {
                one(&core.counters.connect_failures);
                if let Some(refusal) = why.refusal() {
                    core.counters.refused(refusal);
                }
                debug!(store = %core.address, reason = %why, "no connection");
                core.unreachable(&error(why.kind(), why.to_string()));
            }
        }
    }
}

/// One connection at work.
struct Driver {
    core: Arc<Core>,
    number: usize,
    connection: Connection,
    hashes: [Bytes; Script::ALL.len()],
    jobs: Vec<Job>,
    collected: Vec<Call>,
    out: Vec<u8>,
    /// How much of `out` is written.
    written: usize,
    /// Calls that wait for their replies, each with where it ends in `out`.
    calls: VecDeque<(Call, usize)>,
}

/// What a flush says about the server's health.
#[derive(Default)]
struct Findings {
    answered: bool,
    failed: Option<StoreError>,
}

impl Driver {
    fn new(core: Arc<Core>, number: usize, connection: Connection, hashes: [Bytes; Script::ALL.len()]) -> Driver {
        Driver {
            core,
            number,
            connection,
            hashes,
            jobs: Vec::new(),
            collected: Vec::new(),
            out: Vec::new(),
            written: 0,
            calls: VecDeque::new(),
        }
    }

    /// Works until the connection is of no use any more, or the primary retires.
    async fn serve(&mut self, backoff: &mut Backoff) {
        let core = self.core.clone();
        while !core.is_over() {
            let alive = match core.gate.probe_at() {
                Some(at) if self.number == 0 => self.probe(at).await,
                Some(_) => self.idle(LOOK_EVERY).await,
                None => self.work().await,
            };
            if !alive {
                break;
            }
            backoff.worked();
        }
        core.queue.take(self.number, 0, &mut self.jobs);
    }

    /// Waits for work and does it. False if the connection is broken.
    async fn work(&mut self) -> bool {
        let core = self.core.clone();
        select! {
            biased;
            () = core.queue.work_or_call(self.number) => {}
            broken = self.connection.idle() => return self.lost(&broken),
        }
        core.queue.take(self.number, JOBS_MAX, &mut self.jobs);
        self.flush().await
    }

    /// Waits, and watches the connection. False if it is broken.
    async fn idle(&mut self, span: Span) -> bool {
        let core = self.core.clone();
        select! {
            () = core.pause(span) => true,
            broken = self.connection.idle() => self.lost(&broken),
        }
    }

    /// Asks the real script, when it is time to, whether the server is well again.
    async fn probe(&mut self, at: Time) -> bool {
        let core = self.core.clone();
        let now = core.now();
        if at > now && !self.idle(at.since(now)).await {
            return false;
        }
        let Some((question, slot)) = core.probe_question() else { return true };
        one(&core.counters.probes);
        let ticket = Ticket::new(question, slot, false, core.now().after(core.shared.config.within));
        self.jobs.push(Job::Ask(ticket.clone()));
        let alive = self.flush().await;
        // Who answers that somebody else has the key is well.
        let good = matches!(
            ticket.give_up(),
            GaveUp::Answered(Ok(_) | Err(Setback::Redirected(Redirect::Moved { .. } | Redirect::Ask { .. }, _)))
        );
        core.probed(good);
        alive
    }

    /// Sends the jobs and answers them. False if the connection is broken.
    async fn flush(&mut self) -> bool {
        let core = self.core.clone();
        let now = core.now();
        self.collect(now);
        if self.calls.is_empty() {
            return true;
        }
        one(&core.counters.flushes);
        let asked = self.calls.iter().any(|(call, _)| call.script().is_some());
        let until =
            |(call, _): &(Call, usize)| if asked && call.script().is_none() { None } else { Some(call.until()) };
        let until = self.calls.iter().filter_map(until).max().unwrap_or(now);
        let mut findings = Findings::default();
        let why = match timeout(until.since(now).into(), self.exchange(&mut findings)).await {
            Ok(Ok(())) => None,
            Ok(Err(broken)) => Some(broken.to_string()),
            Err(_) => Some(format!("no answer within {}", until.since(now))),
        };
        if let Some(why) = &why {
            self.give_up(why);
            findings.failed = Some(error(StoreErrorKind::Unavailable, why.clone()));
        }
        match findings {
            Findings { failed: Some(failed), .. } => core.failed(&failed),
            Findings { answered: true, .. } => core.gate.succeeded(core.now()),
            _ => {}
        }
        why.is_none()
    }

    /// Makes calls of the jobs, and bytes of the calls.
    fn collect(&mut self, now: Time) {
        let estimate = *self.core.estimate.lock();
        let collector = Collector { clustered: self.core.shared.is_clustered(), now, estimate: &estimate };
        for job in self.jobs.drain(..) {
            collector.add(job, &mut self.collected);
        }
        (self.written, self.calls) = (0, VecDeque::with_capacity(self.collected.len()));
        self.out.clear();
        for call in self.collected.drain(..) {
            count(&self.core.counters, &call);
            let hash = call.script().and_then(|script| self.hashes.get(script.index()));
            call.encode(script::Call::Sha(hash.map_or(&[], |hash| hash)), &mut self.out);
            self.calls.push_back((call, self.out.len()));
        }
    }

    /// Writes everything, reads every reply, and sends once more what the server had forgotten.
    async fn exchange(&mut self, findings: &mut Findings) -> Result<(), Broken> {
        let before = self.core.reloads.each_ref().map(|count| count.load(Ordering::Relaxed));
        let mut forgotten = self.round(findings).await?;
        if forgotten.is_empty() {
            return Ok(());
        }
        self.out.clear();
        self.written = 0;
        let mut loading = [false; Script::ALL.len()];
        for call in forgotten.drain(..) {
            let Some(place) = call.script().map(Script::index) else { continue };
            let how = if self.is_first_to_reload(place, &before, &mut loading) {
                one(&self.core.counters.reloads);
                script::Call::Text
            } else {
                script::Call::Sha(self.hashes.get(place).map_or(&[], |hash| hash))
            };
            call.encode(how, &mut self.out);
            self.calls.push_back((call, self.out.len()));
        }
        for call in self.round(findings).await? {
            let why = error(StoreErrorKind::Unavailable, Refusal::NoScript.meaning());
            call.fail(&why);
            findings.failed = Some(why);
        }
        Ok(())
    }

    /// One text per script and loss, also among several connections.
    fn is_first_to_reload(&self, place: usize, before: &[u64], loading: &mut [bool]) -> bool {
        let (Some(count), Some(before), Some(loading)) =
            (self.core.reloads.get(place), before.get(place), loading.get_mut(place))
        else {
            return true;
        };
        if *loading {
            return false;
        }
        *loading = true;
        count.compare_exchange(*before, before + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Writes and reads; the calls whose script the server does not know come back.
    async fn round(&mut self, findings: &mut Findings) -> Result<Vec<Call>, Broken> {
        let core = self.core.clone();
        let sent = core.now();
        self.connection.write(&self.out, &mut self.written).await?;
        let (mut forgotten, mut told) = (Vec::new(), false);
        while let Some((call, _)) = self.calls.front() {
            let expected = call.replies();
            let mut replies = Vec::with_capacity(expected);
            for _ in 0..expected {
                replies.push(self.connection.reply().await?);
            }
            let Some((call, _)) = self.calls.pop_front() else { break };
            let received = core.now();
            core.last_contact.store(received.nanos(), Ordering::Relaxed);
            if call.script().is_some() {
                core.counters.took(received.since(sent));
            }
            match call.settle(replies, &core.address.host) {
                Settled::Done(None) => {}
                Settled::Done(Some(now)) => {
                    findings.answered = true;
                    if !std::mem::replace(&mut told, true) {
                        core.observe_time(sent, received, now);
                    }
                }
                Settled::Expired(now) => {
                    one(&core.counters.expired);
                    core.observe_time(sent, received, now);
                    findings.failed = Some(error(StoreErrorKind::Unavailable, "calls come to the store too late"));
                }
                Settled::Refused(refusal) => self.refused(refusal, findings),
                Settled::Unknown(call) => {
                    core.counters.refused(Refusal::NoScript);
                    forgotten.push(call);
                }
                Settled::OutOfStep(what) => return Err(Broken::OutOfStep(what)),
            }
        }
        Ok(forgotten)
    }

    fn refused(&self, refusal: Refusal, findings: &mut Findings) {
        self.core.counters.refused(refusal);
        if refusal == Refusal::ReadOnly {
            self.core.is_a_replica();
        }
        if refusal.is_failure() {
            findings.failed = Some(error(StoreErrorKind::Unavailable, refusal.meaning()));
        } else {
            findings.answered = true;
        }
    }

    /// Fails every call without a reply: what is not wholly written was never executed, of the rest nobody knows.
    fn give_up(&mut self, why: &str) {
        one(&self.core.counters.broken);
        debug!(store = %self.core.address, reason = why, "connection given up");
        for (call, end) in self.calls.drain(..) {
            let sent = self.written >= end;
            let kind = if sent { StoreErrorKind::Indeterminate } else { StoreErrorKind::Unavailable };
            call.fail(&error(kind, why));
        }
    }

    /// The connection broke while nothing was asked.
    fn lost(&self, broken: &Broken) -> bool {
        one(&self.core.counters.broken);
        debug!(store = %self.core.address, reason = %broken, "connection lost");
        false
    }
}

fn count(counters: &stats::Counters, call: &Call) {
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
