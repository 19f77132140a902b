//! Calls that were written in one go, and what is known of them until the last reply is in.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use tollgate_core::Time;
use tollgate_resp::RespValue;
use tollgate_store::{StoreError, StoreErrorKind};

use super::core::PrimaryCore;
use super::pipelined_call::{CallOutcome, PipelinedCall};
use crate::client::failure::{Refusal, error};
use crate::store::script::Script;
use crate::store::stats::{add, increment};

/// Calls under way.
pub(super) struct InFlight {
    /// Those without a reply.
    calls: VecDeque<PipelinedCall>,
    /// How many of all its calls are wholly written.
    written: usize,
    /// How many have their reply.
    completed: usize,
    /// When it was written.
    pub(super) sent: Time,
    /// When the last of those who wait leaves: what comes later is late.
    pub(super) until: Time,
    /// How often each script had been sent as text by then.
    pub(super) reloads: [u64; Script::ALL.len()],
    /// True if it is the second attempt, with texts.
    again: bool,
    /// Calls whose script the server did not know.
    unknown_script: Vec<PipelinedCall>,
    answered: bool,
    failed: Option<StoreError>,
    /// It was late; that was counted.
    late: bool,
}

impl InFlight {
    pub(super) fn new(calls: VecDeque<PipelinedCall>, now: Time, core: &PrimaryCore, again: bool) -> InFlight {
        let asked = calls.iter().any(|call| call.script().is_some());
        // Who waits for an answer to a question is the one to hurry for.
        let counts = |call: &&PipelinedCall| !asked || call.script().is_some();
        let last = calls.iter().filter(counts).map(PipelinedCall::until).max().unwrap_or(now);
        // A caller without patience leaves by itself, and says nothing about the connection.
        let until = last.max(now.after(core.context.config.within));
        let reloads = core.reloads.each_ref().map(|count| count.load(Ordering::Relaxed));
        InFlight {
            calls,
            written: 0,
            completed: 0,
            sent: now,
            until,
            reloads,
            again,
            unknown_script: Vec::new(),
            answered: false,
            failed: None,
            late: false,
        }
    }

    /// It is late, and this node is: its replies are no success any more, and no failure.
    pub(super) fn note_late(&mut self, core: &PrimaryCore) {
        if !std::mem::replace(&mut self.late, true) {
            increment(&core.counters.own_delays);
        }
    }

    /// So many calls are wholly written.
    pub(super) fn wrote(&mut self, calls: usize) {
        self.written = calls;
    }

    /// How many replies the next call has; `None` if all are in.
    pub(super) fn expects(&self) -> Option<usize> {
        self.calls.front().map(PipelinedCall::replies)
    }

    /// How long the next reply may be, about.
    pub(super) fn reply_bytes(&self) -> usize {
        self.calls.front().map_or(0, PipelinedCall::reply_bytes)
    }

    /// All replies of the next call are in. Fails if they are not replies to it.
    pub(super) fn complete(&mut self, replies: &mut Vec<RespValue>, core: &PrimaryCore) -> Result<(), &'static str> {
        let Some(call) = self.calls.pop_front() else { return Err("there is more than was asked for") };
        let received = core.now();
        if call.script().is_some() {
            core.counters.record_latency(received.since(self.sent));
        }
        let patient = core.is_patient(call.until().since(self.sent));
        let first = self.completed == 0;
        self.completed += 1;
        core.last_contact.store(received.nanos(), Ordering::Relaxed);
        match call.settle(replies, &core.address.host) {
            CallOutcome::Done { time, disagreed, foreign } => {
                add(&core.counters.disagreed, disagreed as usize);
                core.count_foreign(foreign);
                self.answered |= time.is_some();
                // The first reply of a flight has waited for nobody: its round trip is the fastest.
                if let (true, Some(time)) = (first, time) {
                    core.observe_time(self.sent, received, time);
                }
            }
            CallOutcome::Expired(time) => {
                increment(&core.counters.expired);
                core.observe_time(self.sent, received, time);
                if patient && !std::mem::replace(&mut self.late, true) {
                    core.late(&error(StoreErrorKind::Unavailable, "calls come to the store too late"));
                }
            }
            CallOutcome::Refused(refusal) => self.refused(refusal, core),
            CallOutcome::Unknown(call) => {
                core.counters.count_refusal(Refusal::NoScript);
                self.unknown_script.push(call);
            }
            CallOutcome::OutOfStep(what) => return Err(what),
        }
        Ok(())
    }

    fn refused(&mut self, refusal: Refusal, core: &PrimaryCore) {
        core.counters.count_refusal(refusal);
        if refusal == Refusal::ReadOnly {
            core.mark_replica();
        }
        if refusal.is_failure() {
            let kind = refusal.treatment().kind().unwrap_or(StoreErrorKind::Unavailable);
            self.failed = Some(error(kind, refusal.meaning()));
        } else {
            self.answered = true;
        }
    }

    /// All replies are in: tells the breaker, and hands out what must be sent again with its text.
    pub(super) fn end(mut self, core: &PrimaryCore) -> VecDeque<PipelinedCall> {
        let mut unknown_script = std::mem::take(&mut self.unknown_script);
        if self.again {
            for call in unknown_script.drain(..) {
                let why = error(StoreErrorKind::Unavailable, Refusal::NoScript.meaning());
                call.fail(&why);
                self.failed = Some(why);
            }
        }
        match self {
            InFlight { failed: Some(failed), .. } => core.failed(&failed),
            InFlight { answered: true, late: false, .. } => core.breaker.succeeded(core.now()),
            _ => {}
        }
        unknown_script.into()
    }

    /// The connection is of no use any more: what is not wholly written was never executed, of the rest nobody knows.
    pub(super) fn abandon(self, why: &str) {
        for (place, call) in self.calls.into_iter().enumerate() {
            let sent = self.completed + place < self.written;
            call.fail(&error(if sent { StoreErrorKind::Indeterminate } else { StoreErrorKind::Unavailable }, why));
        }
        for call in self.unknown_script {
            call.fail(&error(StoreErrorKind::Unavailable, why));
        }
    }
}
