//! Events that operators want to hear of, from whichever part of a node noticed them to the task that sends them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::Value;

/// Most events that wait; the sender takes them every second.
const EVENTS_MAX: usize = 1000;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// The usage of a quota reached one of its marks.
    QuotaMark,
    /// Many more requests are denied than before.
    DenialSpike,
    /// One client is refused minute after minute.
    ClientRefusedSteadily,
    /// A rule refuses a client altogether for a while.
    PenaltyBegun,
    /// The breaker of a server of the store is open.
    BreakerOpen,
    /// Requests are decided without the store.
    FallbackActive,
    /// New rules cannot be loaded.
    ReloadFailing,
    /// An operator tests a webhook.
    Test,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [EventKind; 8] = [
        EventKind::QuotaMark,
        EventKind::DenialSpike,
        EventKind::ClientRefusedSteadily,
        EventKind::PenaltyBegun,
        EventKind::BreakerOpen,
        EventKind::FallbackActive,
        EventKind::ReloadFailing,
        EventKind::Test,
    ];

    /// The name in messages, rows and requests.
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::QuotaMark => "quota_mark",
            EventKind::DenialSpike => "denial_spike",
            EventKind::ClientRefusedSteadily => "client_refused_steadily",
            EventKind::PenaltyBegun => "penalty_begun",
            EventKind::BreakerOpen => "breaker_open",
            EventKind::FallbackActive => "fallback_active",
            EventKind::ReloadFailing => "reload_failing",
            EventKind::Test => "test",
        }
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<EventKind> {
        EventKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorEvent {
    /// What happened.
    pub kind: EventKind,
    /// The namespace that it concerns, if it is one.
    pub namespace: Option<String>,
    /// The rule.
    pub rule: Option<String>,
    /// The client, as requests name it: it leaves this process as a digest.
    pub client: Option<String>,
    /// Events of the same kind, rule, client and occasion are one, whichever node noticed them.
    pub occasion: String,
    /// One sentence for people.
    pub summary: String,
    /// Further facts, for programs.
    pub data: Value,
}

impl OperatorEvent {
    /// An event that concerns the whole node.
    pub fn of(kind: EventKind) -> OperatorEvent {
        let (occasion, summary) = (String::new(), String::new());
        OperatorEvent { kind, namespace: None, rule: None, client: None, occasion, summary, data: Value::Null }
    }
}

/// Events that wait for the task that sends them. Nothing waits, and nothing is built, without a webhook.
#[derive(Debug, Default)]
pub struct EventQueue {
    is_wanted: AtomicBool,
    events: Mutex<Vec<OperatorEvent>>,
    lost: AtomicU64,
}

impl EventQueue {
    /// Says whether events are to be kept.
    pub fn want(&self, is_wanted: bool) {
        self.is_wanted.store(is_wanted, Ordering::Relaxed);
    }

    /// Adds an event, if it is wanted and there is room.
    pub fn push(&self, event: impl FnOnce() -> OperatorEvent) {
        if !self.is_wanted.load(Ordering::Relaxed) {
            return;
        }
        let mut events = self.events.lock();
        match events.len() < EVENTS_MAX {
            true => events.push(event()),
            false => _ = self.lost.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Takes all events, and the number of those that were lost since.
    pub fn drain(&self) -> (Vec<OperatorEvent>, u64) {
        (std::mem::take(&mut *self.events.lock()), self.lost.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_only_if_wanted_and_only_so_much() {
        let queue = EventQueue::default();
        queue.push(|| unreachable!("nothing is built that is not wanted"));
        queue.want(true);
        (0..EVENTS_MAX + 3).for_each(|_| queue.push(|| OperatorEvent::of(EventKind::Test)));
        let (events, lost) = queue.drain();
        assert_eq!((events.len(), lost), (EVENTS_MAX, 3));
        assert_eq!(queue.drain(), (vec![], 0));
        assert!(EventKind::ALL.iter().all(|kind| EventKind::named(kind.name()) == Some(*kind)));
    }
}
