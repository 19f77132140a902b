//! Calls that were written in one go, and what is known of them until the last reply is in.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use tollgate_core::Time;
use tollgate_resp::RespValue;
use tollgate_store::{StoreError, StoreErrorKind};

use super::call::{Call, Settled};
use super::core::Core;
use crate::client::failure::{Refusal, error};
use crate::store::script::Script;
use crate::store::stats::{many, one};

/// Calls under way.
pub(super) struct Flight {
    /// Those without a reply.
    calls: VecDeque<Call>,
    /// How many of all its calls are wholly written.
    written: usize,
    /// How many have their reply.
    landed: usize,
    /// When it was written.
    pub(super) sent: Time,
    /// When the last of those who wait leaves: what comes later is late.
    pub(super) until: Time,
    /// How often each script had been sent as text by then.
    pub(super) reloads: [u64; Script::ALL.len()],
    /// True if it is the second attempt, with texts.
    again: bool,
    /// Calls whose script the server did not know.
    forgotten: Vec<Call>,
    answered: bool,
    failed: Option<StoreError>,
    /// It was late; that was counted.
    late: bool,
}

impl Flight {
    pub(super) fn new(calls: VecDeque<Call>, now: Time, core: &Core, again: bool) -> Flight {
        let asked = calls.iter().any(|call| call.script().is_some());
        // Who waits for an answer to a question is the one to hurry for.
        let counts = |call: &&Call| !asked || call.script().is_some();
        let last = calls.iter().filter(counts).map(Call::until).max().unwrap_or(now);
        // A caller without patience leaves by itself, and says nothing about the connection.
        let until = last.max(now.after(core.shared.config.within));
        let reloads = core.reloads.each_ref().map(|count| count.load(Ordering::Relaxed));
        Flight {
            calls,
            written: 0,
            landed: 0,
            sent: now,
            until,
            reloads,
            again,
            forgotten: Vec::new(),
            answered: false,
            failed: None,
            late: false,
        }
    }

    /// It is late, and this node is: its replies are no success any more, and no failure.
    pub(super) fn note_late(&mut self, core: &Core) {
        if !std::mem::replace(&mut self.late, true) {
            one(&core.counters.own_delays);
        }
    }

    /// So many calls are wholly written.
    pub(super) fn wrote(&mut self, calls: usize) {
        self.written = calls;
    }

    /// How many replies the next call has; `None` if all are in.
    pub(super) fn expects(&self) -> Option<usize> {
        self.calls.front().map(Call::replies)
    }

    /// How long the next reply may be, about.
    pub(super) fn reply_bytes(&self) -> usize {
        self.calls.front().map_or(0, Call::reply_bytes)
    }

    /// All replies of the next call are in. Fails if they are not replies to it.
    pub(super) fn land(&mut self, replies: &mut Vec<RespValue>, core: &Core) -> Result<(), &'static str> {
        let Some(call) = self.calls.pop_front() else { return Err("there is more than was asked for") };
        let received = core.now();
        if call.script().is_some() {
            core.counters.took(received.since(self.sent));
        }
        let patient = core.is_patient(call.until().since(self.sent));
        let first = self.landed == 0;
        self.landed += 1;
        core.last_contact.store(received.nanos(), Ordering::Relaxed);
        match call.settle(replies, &core.address.host) {
            Settled::Done { time, disagreed, foreign } => {
                many(&core.counters.disagreed, disagreed as usize);
                core.found_foreign(foreign);
                self.answered |= time.is_some();
                // The first reply of a flight has waited for nobody: its round trip is the fastest.
                if let (true, Some(time)) = (first, time) {
                    core.observe_time(self.sent, received, time);
                }
            }
            Settled::Expired(time) => {
                one(&core.counters.expired);
                core.observe_time(self.sent, received, time);
                if patient && !std::mem::replace(&mut self.late, true) {
                    core.late(&error(StoreErrorKind::Unavailable, "calls come to the store too late"));
                }
            }
            Settled::Refused(refusal) => self.refused(refusal, core),
            Settled::Unknown(call) => {
                core.counters.refused(Refusal::NoScript);
                self.forgotten.push(call);
            }
            Settled::OutOfStep(what) => return Err(what),
        }
        Ok(())
    }

    fn refused(&mut self, refusal: Refusal, core: &Core) {
        core.counters.refused(refusal);
        if refusal == Refusal::ReadOnly {
            core.is_a_replica();
        }
        if refusal.is_failure() {
            let kind = refusal.treatment().kind().unwrap_or(StoreErrorKind::Unavailable);
            self.failed = Some(error(kind, refusal.meaning()));
        } else {
            self.answered = true;
        }
    }

    /// All replies are in: tells the breaker, and hands out what must be sent again with its text.
    pub(super) fn end(mut self, core: &Core) -> VecDeque<Call> {
        let mut forgotten = std::mem::take(&mut self.forgotten);
        if self.again {
            for call in forgotten.drain(..) {
                let why = error(StoreErrorKind::Unavailable, Refusal::NoScript.meaning());
                call.fail(&why);
                self.failed = Some(why);
            }
        }
        match self {
            Flight { failed: Some(failed), .. } => core.failed(&failed),
            Flight { answered: true, late: false, .. } => core.gate.succeeded(core.now()),
            _ => {}
        }
        forgotten.into()
    }

    /// The connection is of no use any more: what is not wholly written was never executed, of the rest nobody knows.
    pub(super) fn abandon(self, why: &str) {
        for (place, call) in self.calls.into_iter().enumerate() {
            let sent = self.landed + place < self.written;
            call.fail(&error(if sent { StoreErrorKind::Indeterminate } else { StoreErrorKind::Unavailable }, why));
        }
        for call in self.forgotten {
            call.fail(&error(StoreErrorKind::Unavailable, why));
        }
    }
}
