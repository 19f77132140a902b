//! Requests that wait for a slot: a bounded queue per class of priority, as values.
//!
//! The highest class that waits is served first; within a class the oldest request, until a queue stands. A queue that
//! has not been empty for an interval is no burst: its requests are then served [by discipline](QueueDiscipline), so
//! that those which are admitted are admitted soon. It stands until nothing was shed for 100 ms.
//!
//! P26: in any 100 ms, no request is shed while one of a lower class is admitted. Three rules see to it.
//! - After a request is shed, lower classes are held back for 100 ms.
//! - A request is shed for its age only after 100 ms in a queue, or from a class whose queue stands that long, or that
//!   was shed from within 100 ms: no lower class was admitted meanwhile.
//! - A full queue sheds the lowest class that waits. If a class below that was admitted within 100 ms, the queue grows
//!   instead, up to twice its bound.

use std::collections::BTreeMap;

use tollgate_core::{Span, Time};

use crate::priority::Priority;

mod class_queue;
#[cfg(test)]
mod tests;

use class_queue::ClassQueue;

/// The window of P26.
pub(crate) const PRIORITY_WINDOW: Span = Span::from_millis(100);

/// How a queue that stands is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueDiscipline {
    /// The oldest first, always.
    Fifo,
    /// The oldest first; requests that waited longer than the target are shed. CoDel as it suits requests: they do not
    /// slow down when one is dropped, so all that are late go at once instead of one per interval.
    #[default]
    Codel,
    /// The newest first: its caller is still there. The others wait until their maximum.
    Lifo,
}

/// Bounds of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Most requests that wait; 0 for no queue, and then without P26.
    pub max: usize,
    /// Longest wait; at least 100 ms.
    pub max_wait: Span,
    /// How it is served under overload.
    pub discipline: QueueDiscipline,
    /// Longest wait in a queue that stands, with CoDel.
    pub target: Span,
    /// A queue that was not empty for so long stands; at least 100 ms.
    pub interval: Span,
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig {
            max: 100,
            max_wait: Span::from_millis(500),
            discipline: QueueDiscipline::Codel,
            target: Span::from_millis(5),
            interval: PRIORITY_WINDOW,
        }
    }
}

/// Why a request was shed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShedReason {
    /// The queue was full of requests that are as important.
    QueueFull,
    /// A more important request took its place in the queue.
    Displaced,
    /// It waited for its maximum.
    WaitedTooLong,
    /// It waited longer than the target in a queue that stands.
    Stale,
}

impl ShedReason {
    /// For metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            ShedReason::QueueFull => "queue_full",
            ShedReason::Displaced => "displaced",
            ShedReason::WaitedTooLong => "waited_too_long",
            ShedReason::Stale => "stale",
        }
    }
}

/// What became of a request that had to wait.
#[derive(Debug, PartialEq, Eq)]
pub enum Pushed<T> {
    /// It waits, under this number.
    Waiting(u64),
    /// It waits, in place of a less important one.
    Displacing(u64, T),
    /// The queue is full.
    Refused(T),
}

/// Requests that wait. `T` is what the caller knows them by.
#[derive(Debug)]
pub struct WaitQueue<T> {
    config: QueueConfig,
    classes: BTreeMap<Priority, ClassQueue<T>>,
    len: usize,
    next: u64,
}

impl<T> WaitQueue<T> {
    /// An empty queue.
    pub fn new(config: QueueConfig) -> WaitQueue<T> {
        let max_wait = config.max_wait.max(PRIORITY_WINDOW);
        let interval = config.interval.max(PRIORITY_WINDOW);
        WaitQueue { config: QueueConfig { max_wait, interval, ..config }, classes: BTreeMap::new(), len: 0, next: 0 }
    }

    /// How many requests wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many requests of a class wait.
    pub fn waiting(&self, class: Priority) -> usize {
        self.classes.get(&class).map_or(0, ClassQueue::len)
    }

    /// Whether a request of this class may be admitted without waiting: none waits that is as important, and the class
    /// is not held back.
    pub fn may_pass(&self, class: Priority, now: Time) -> bool {
        self.classes.range(class..).all(|(_, queue)| queue.len() == 0) && !self.is_held_back(class, now)
    }

    /// A request of this class was admitted without waiting.
    pub fn passed(&mut self, class: Priority, now: Time) {
        self.class(class).admitted_at = Some(now);
    }

    /// A request waits, if there is a place for it.
    pub fn push(&mut self, class: Priority, now: Time, item: T) -> Pushed<T> {
        if self.len < self.config.max {
            return Pushed::Waiting(self.insert(class, now, item));
        }
        let lowest = self.classes.iter().find(|(_, queue)| queue.len() > 0).map(|(lowest, _)| *lowest);
        let victim = lowest.map_or(class, |lowest| lowest.min(class));
        if self.len < self.config.max.saturating_mul(2) && self.was_admitted_below(victim, now) {
            return Pushed::Waiting(self.insert(class, now, item));
        }
        self.class(victim).shed_at = Some(now);
        if victim == class {
            return Pushed::Refused(item);
        }
        let is_lifo = self.is_lifo(victim, now);
        match self.class(victim).take_last_served(is_lifo) {
            Some(displaced) => {
                self.len -= 1;
                Pushed::Displacing(self.insert(class, now, item), displaced)
            }
            None => Pushed::Refused(item),
        }
    }

    /// Takes out every request that waited too long; `shed` is told of each.
    pub fn expire(&mut self, now: Time, mut shed: impl FnMut(T, ShedReason)) {
        let config = self.config;
        for queue in self.classes.values_mut() {
            let stands = config.discipline == QueueDiscipline::Codel && queue.stands(now, config.interval);
            while let Some(waited) = queue.oldest_wait(now) {
                let reason = match waited {
                    _ if waited >= config.max_wait => ShedReason::WaitedTooLong,
                    _ if stands && waited > config.target => ShedReason::Stale,
                    _ => break,
                };
                let Some(item) = queue.take_oldest() else { break };
                self.len -= 1;
                queue.shed_at = Some(now);
                shed(item, reason);
            }
        }
    }

    /// The class that is served next, if any may be.
    pub fn next_class(&self, now: Time) -> Option<Priority> {
        let (class, _) = self.classes.iter().rev().find(|(_, queue)| queue.len() > 0)?;
        (!self.is_held_back(*class, now)).then_some(*class)
    }

    /// Takes the request of this class that is served next, and how long it waited: it is admitted. Call
    /// [`expire`](WaitQueue::expire) first.
    pub fn pop(&mut self, class: Priority, now: Time) -> Option<(T, Span)> {
        let is_lifo = self.is_lifo(class, now);
        let queue = self.classes.get_mut(&class)?;
        let popped = queue.take_next(is_lifo, now)?;
        queue.admitted_at = Some(now);
        self.len -= 1;
        Some(popped)
    }

    /// Takes out a request whose caller is gone.
    pub fn remove(&mut self, class: Priority, number: u64) -> Option<T> {
        let item = self.classes.get_mut(&class)?.remove(number)?;
        self.len -= 1;
        Some(item)
    }

    /// Whether a queue stands, or a request was shed within the last `window`.
    pub fn is_overloaded(&self, now: Time, window: Span) -> bool {
        let interval = self.config.interval;
        self.classes
            .values()
            .any(|queue| queue.stands(now, interval) || queue.shed_at.is_some_and(|shed| now < shed.after(window)))
    }

    /// Whether a request of a higher class was shed a moment ago.
    fn is_held_back(&self, class: Priority, now: Time) -> bool {
        let above = self.classes.range((std::ops::Bound::Excluded(class), std::ops::Bound::Unbounded));
        above.into_iter().any(|(_, queue)| queue.shed_at.is_some_and(|shed| now < shed.after(PRIORITY_WINDOW)))
    }

    fn was_admitted_below(&self, class: Priority, now: Time) -> bool {
        let mut below = self.classes.range(..class);
        below.any(|(_, queue)| queue.admitted_at.is_some_and(|admitted| now < admitted.after(PRIORITY_WINDOW)))
    }

    fn is_lifo(&self, class: Priority, now: Time) -> bool {
        let queue = self.classes.get(&class);
        self.config.discipline == QueueDiscipline::Lifo
            && queue.is_some_and(|queue| queue.stands(now, self.config.interval))
    }

    fn insert(&mut self, class: Priority, now: Time, item: T) -> u64 {
        let number = self.next;
        self.next += 1;
        self.len += 1;
        self.class(class).insert(number, now, item);
        number
    }

    fn class(&mut self, class: Priority) -> &mut ClassQueue<T> {
        self.classes.entry(class).or_default()
    }
}
