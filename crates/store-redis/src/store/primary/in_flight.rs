//! Calls that were written at once, until their last reply arrives.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use tollgate_core::Time;
use tollgate_resp::RespValue;
use tollgate_store::{StoreError, StoreErrorKind};

use super::call::{CallOutcome, PipelinedCall};
use super::core::PrimaryCore;
use crate::client::failure::{ErrorCode, error};
use crate::store::script::Script;
use crate::store::stats::{add, increment};

/// A batch of calls in flight.
pub(super) struct InFlight {
    /// Calls without a reply.
    calls: VecDeque<PipelinedCall>,
    /// How many of its calls were written completely.
    written: usize,
    /// How many calls are complete.
    completed: usize,
    /// When the batch was written.
    pub(super) sent: Time,
    /// When the last caller stops waiting: later replies are late.
    pub(super) until: Time,
    /// How often each script had been sent as text by then.
    pub(super) reloads: [u64; Script::ALL.len()],
    /// True for the second attempt, with script texts.
    again: bool,
    /// Calls whose script the server did not know.
    unknown_script: Vec<PipelinedCall>,
    answered: bool,
    failed: Option<StoreError>,
    /// The batch was late, and that was counted.
    late: bool,
}

/// What is left of a batch whose calls are complete.
pub(super) struct Ended {
    /// Calls that must be sent again with their script.
    pub(super) unknown_script: VecDeque<PipelinedCall>,
    /// An empty list, for the calls of the next batch.
    pub(super) spare: VecDeque<PipelinedCall>,
}

impl InFlight {
    pub(super) fn new(calls: VecDeque<PipelinedCall>, now: Time, core: &PrimaryCore, again: bool) -> InFlight {
        let asked = calls.iter().any(|call| call.script().is_some());
        // Callers of scripts set the deadline, if there are any.
        let counts = |call: &&PipelinedCall| !asked || call.script().is_some();
        let last = calls.iter().filter(counts).map(PipelinedCall::until).max().unwrap_or(now);
        // A caller with a short timeout says nothing about the connection.
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

    /// The batch is late because this node is: its replies are neither a success nor a failure.
    pub(super) fn note_late(&mut self, core: &PrimaryCore) {
        if !std::mem::replace(&mut self.late, true) {
            increment(&core.counters.own_delays);
        }
    }

    /// Records how many calls were written completely.
    pub(super) fn wrote(&mut self, calls: usize) {
        self.written = calls;
    }

    /// Number of replies of the next call; `None` if all calls are complete.
    pub(super) fn expects(&self) -> Option<usize> {
        self.calls.front().map(PipelinedCall::replies)
    }

    /// Approximate size of the next reply.
    pub(super) fn reply_bytes(&self) -> usize {
        self.calls.front().map_or(0, PipelinedCall::reply_bytes)
    }

    /// Completes the next call with its replies. An error if they do not belong to it.
    pub(super) fn complete(&mut self, replies: &mut Vec<RespValue>, core: &PrimaryCore) -> Result<(), &'static str> {
        let Some(call) = self.calls.pop_front() else { return Err("unexpected reply") };
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
                // The first reply of a batch did not wait for others: its round trip is the fastest.
                if let (true, Some(time)) = (first, time) {
                    core.observe_time(self.sent, received, time);
                }
            }
            CallOutcome::Expired(time) => {
                increment(&core.counters.expired);
                core.observe_time(self.sent, received, time);
                if patient && !std::mem::replace(&mut self.late, true) {
                    core.late(&error(StoreErrorKind::Unavailable, "calls reach the store after their deadline"));
                }
            }
            CallOutcome::Error(code) => self.on_error(code, core),
            CallOutcome::Unknown(call) => {
                core.counters.count_error(ErrorCode::NoScript);
                self.unknown_script.push(call);
            }
            CallOutcome::OutOfStep(what) => return Err(what),
        }
        Ok(())
    }

    fn on_error(&mut self, code: ErrorCode, core: &PrimaryCore) {
        core.counters.count_error(code);
        if code == ErrorCode::ReadOnly {
            core.mark_replica();
        }
        if code.is_failure() {
            let kind = code.treatment().kind().unwrap_or(StoreErrorKind::Unavailable);
            self.failed = Some(error(kind, code.meaning()));
        } else {
            self.answered = true;
        }
    }

    /// All calls are complete: informs the breaker, and returns the calls that must be sent again with their script.
    pub(super) fn end(mut self, core: &PrimaryCore) -> Ended {
        let (mut unknown_script, spare) = (std::mem::take(&mut self.unknown_script), std::mem::take(&mut self.calls));
        if self.again {
            for call in unknown_script.drain(..) {
                let why = error(StoreErrorKind::Unavailable, ErrorCode::NoScript.meaning());
                call.fail(&why);
                self.failed = Some(why);
            }
        }
        match self {
            InFlight { failed: Some(failed), .. } => core.failed(&failed),
            InFlight { answered: true, late: false, .. } => core.breaker.succeeded(core.now()),
            _ => {}
        }
        Ended { unknown_script: unknown_script.into(), spare }
    }

    /// The connection failed: calls that were not written completely were not executed, the others may have been.
    pub(super) fn abandon(self, why: &str) {
        for (index, call) in self.calls.into_iter().enumerate() {
            let sent = self.completed + index < self.written;
            call.fail(&error(if sent { StoreErrorKind::Indeterminate } else { StoreErrorKind::Unavailable }, why));
        }
        for call in self.unknown_script {
            call.fail(&error(StoreErrorKind::Unavailable, why));
        }
    }
}
