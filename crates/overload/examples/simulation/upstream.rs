//! An upstream with a knee: a few workers, a queue without bound, and work that takes longer the more of it there is.

use std::collections::VecDeque;

use tollgate_core::{Span, Time};

use crate::events::{Agenda, Draws, Happening};

/// How many times this is a wide upstream: it finishes as much, each request takes as many times longer.
pub const WIDE: usize = 10;
const WORKERS: usize = 16;
/// The part of the work that is always the same, and the mean of the part that varies, in milliseconds.
const WORK_MS: (f64, f64) = (5.0, 5.0);
/// Each waiting request makes all work longer by this share: memory, caches, context switches.
const CONTENTION: f64 = 0.002;

/// The servers behind the gateway.
pub struct Upstream {
    workers: usize,
    busy: usize,
    waiting: VecDeque<u64>,
    /// How much longer everything takes.
    pub slower: f64,
}

impl Upstream {
    pub fn new(times: usize) -> Upstream {
        Upstream { workers: WORKERS * times, busy: 0, waiting: VecDeque::new(), slower: times as f64 }
    }

    pub fn receive(&mut self, request: u64, now: Time, agenda: &mut Agenda, draws: &mut Draws) {
        if self.busy == self.workers {
            return self.waiting.push_back(request);
        }
        self.busy += 1;
        self.work(request, now, agenda, draws);
    }

    /// A worker is free. It does not know whose callers gave up: it works for them too.
    pub fn finished(&mut self, now: Time, agenda: &mut Agenda, draws: &mut Draws) {
        match self.waiting.pop_front() {
            Some(next) => self.work(next, now, agenda, draws),
            None => self.busy -= 1,
        }
    }

    fn work(&self, request: u64, now: Time, agenda: &mut Agenda, draws: &mut Draws) {
        let (fixed, varying) = WORK_MS;
        let contention = 1.0 + CONTENTION * self.waiting.len() as f64;
        let millis = (fixed + draws.exponential(varying)) * contention * self.slower;
        agenda.add(now.after(Span::from_nanos((millis * 1e6) as u64)), Happening::Finished { request });
    }
}
