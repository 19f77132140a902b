//! The requests of one class that wait, by arrival.

use std::collections::BTreeMap;

use tollgate_core::{Span, Time};

use super::PRIORITY_WINDOW;

/// One class. Numbers rise with arrivals, so the map is in order of arrival, and any request can leave.
#[derive(Debug)]
pub(super) struct ClassQueue<T> {
    waiting: BTreeMap<u64, (Time, T)>,
    /// Since when it has not been empty.
    busy_since: Option<Time>,
    /// When a request of this class was last admitted.
    pub(super) admitted_at: Option<Time>,
    /// When a request of this class was last shed.
    pub(super) shed_at: Option<Time>,
}

impl<T> Default for ClassQueue<T> {
    fn default() -> ClassQueue<T> {
        ClassQueue { waiting: BTreeMap::new(), busy_since: None, admitted_at: None, shed_at: None }
    }
}

impl<T> ClassQueue<T> {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn insert(&mut self, number: u64, now: Time, item: T) {
        self.busy_since.get_or_insert(now);
        self.waiting.insert(number, (now, item));
    }

    /// Whether it has not been empty for `interval`, or a request was shed a moment ago: a queue that is empty because
    /// all of it was shed is still a queue that stands.
    pub(super) fn stands(&self, now: Time, interval: Span) -> bool {
        self.busy_since.is_some_and(|since| now >= since.after(interval))
            || self.shed_at.is_some_and(|shed| now < shed.after(PRIORITY_WINDOW))
    }

    pub(super) fn oldest_wait(&self, now: Time) -> Option<Span> {
        self.waiting.first_key_value().map(|(_, (since, _))| now.since(*since))
    }

    pub(super) fn take_oldest(&mut self) -> Option<T> {
        let taken = self.waiting.pop_first().map(|(_, (_, item))| item);
        self.note_empty();
        taken
    }

    /// The request that is served next, and how long it waited.
    pub(super) fn take_next(&mut self, is_lifo: bool, now: Time) -> Option<(T, Span)> {
        let taken = if is_lifo { self.waiting.pop_last() } else { self.waiting.pop_first() };
        self.note_empty();
        taken.map(|(_, (since, item))| (item, now.since(since)))
    }

    /// The request that would be served last.
    pub(super) fn take_last_served(&mut self, is_lifo: bool) -> Option<T> {
        let taken = if is_lifo { self.waiting.pop_first() } else { self.waiting.pop_last() };
        self.note_empty();
        taken.map(|(_, (_, item))| item)
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        let taken = self.waiting.remove(&number).map(|(_, item)| item);
        self.note_empty();
        taken
    }

    fn note_empty(&mut self) {
        if self.waiting.is_empty() {
            self.busy_since = None;
        }
    }
}
