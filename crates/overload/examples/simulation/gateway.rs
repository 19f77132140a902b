//! The gateway: a limit and a queue in front of the upstream, or neither.

use tollgate_core::{Span, Time};
use tollgate_overload::{AdaptiveLimit, Priority, Pushed, QueueConfig, RttSample, WaitQueue};

/// What was sent to the upstream.
pub struct Sent {
    pub request: u64,
    pub in_flight: u32,
}

pub struct Gateway {
    limit: Option<AdaptiveLimit>,
    queue: WaitQueue<u64>,
    in_flight: u32,
}

impl Gateway {
    pub fn new(limit: Option<AdaptiveLimit>, queue: QueueConfig) -> Gateway {
        Gateway { limit, queue: WaitQueue::new(queue), in_flight: 0 }
    }

    pub fn limit(&self) -> u32 {
        self.limit.as_ref().map_or(0, AdaptiveLimit::limit)
    }

    /// A request arrives: what is sent at once, and its number in the queue.
    pub fn arrive(&mut self, request: u64, class: Priority, now: Time) -> (Option<Sent>, Option<u64>) {
        if self.has_slot() && self.queue.may_pass(class, now) {
            self.queue.passed(class, now);
            return (Some(self.send(request)), None);
        }
        match self.queue.push(class, now, request) {
            Pushed::Waiting(number) | Pushed::Displacing(number, _) => (None, Some(number)),
            Pushed::Refused(_) => (None, None),
        }
    }

    /// A request ended: answered, or given up, which counts as dropped.
    pub fn ended(&mut self, now: Time, rtt: Span, in_flight: u32, dropped: bool, random: u64) {
        self.in_flight -= 1;
        if let Some(limit) = &mut self.limit {
            limit.record(now, RttSample { rtt, in_flight, dropped }, random);
        }
    }

    pub fn leave(&mut self, class: Priority, number: u64) {
        self.queue.remove(class, number);
    }

    /// The next request that may be sent.
    pub fn dispatch(&mut self, now: Time) -> Option<Sent> {
        self.queue.expire(now, |_, _| {});
        let class = self.queue.next_class(now)?;
        if !self.has_slot() {
            return None;
        }
        let (request, _) = self.queue.pop(class, now)?;
        Some(self.send(request))
    }

    fn has_slot(&self) -> bool {
        self.limit.as_ref().is_none_or(|limit| self.in_flight < limit.limit())
    }

    fn send(&mut self, request: u64) -> Sent {
        self.in_flight += 1;
        Sent { request, in_flight: self.in_flight }
    }
}
