//! State shared by the threads of a proxy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use super::socket_pair::SocketPair;
use super::{Direction, LinkMode};

/// The state of a proxy.
#[derive(Debug)]
pub(super) struct ProxyState {
    pub(super) upstream: u16,
    pub(super) accepted: AtomicU64,
    requests: AtomicU64,
    replies: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
    pairs: Mutex<Vec<Weak<SocketPair>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct State {
    requests: ModeSetting,
    replies: ModeSetting,
    refuses: bool,
    is_listening: bool,
    is_closed: bool,
}

/// A mode with a number: setting the same mode again starts afresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ModeSetting {
    pub(super) mode: LinkMode,
    pub(super) number: u64,
}

impl ProxyState {
    pub(super) fn new(upstream: u16) -> ProxyState {
        let order = ModeSetting::default();
        let state = State { requests: order, replies: order, refuses: false, is_listening: true, is_closed: false };
        ProxyState {
            upstream,
            accepted: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            replies: AtomicU64::new(0),
            state: Mutex::new(state),
            changed: Condvar::new(),
            pairs: Mutex::default(),
            threads: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("not poisoned")
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    pub(super) fn set(&self, directions: &[Direction], mode: LinkMode) {
        self.change(|state| {
            for direction in directions {
                let order = match direction {
                    Direction::Requests => &mut state.requests,
                    Direction::Replies => &mut state.replies,
                };
                *order = ModeSetting { mode, number: order.number + 1 };
            }
        });
    }

    pub(super) fn refuse(&self, refuses: bool) {
        self.change(|state| state.refuses = refuses);
    }

    pub(super) fn set_listening(&self, is_listening: bool) {
        self.change(|state| state.is_listening = is_listening);
    }

    pub(super) fn close(&self) {
        self.change(|state| state.is_closed = true);
    }

    pub(super) fn refuses(&self) -> bool {
        self.state().refuses
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// The mode of a direction; `None` when the proxy closes.
    pub(super) fn order(&self, direction: Direction) -> Option<ModeSetting> {
        let state = self.state();
        (!state.is_closed).then_some(match direction {
            Direction::Requests => state.requests,
            Direction::Replies => state.replies,
        })
    }

    /// Waits until the mode of the direction changes, the proxy closes, or the time is over.
    pub(super) fn wait_for_change(&self, direction: Direction, from: ModeSetting, within: Duration) {
        let is_same = |state: &mut State| {
            let order = if direction == Direction::Requests { state.requests } else { state.replies };
            order == from && !state.is_closed
        };
        drop(self.changed.wait_timeout_while(self.state(), within, is_same));
    }

    pub(super) fn wait_until_listening(&self, is_listening: bool) {
        drop(self.changed.wait_while(self.state(), |state| state.is_listening != is_listening && !state.is_closed));
    }

    /// Waits until connections are accepted again; false if the proxy closes instead.
    pub(super) fn wait_until_admitted(&self) -> bool {
        let state = self.changed.wait_while(self.state(), |state| state.refuses && !state.is_closed);
        state.is_ok_and(|state| !state.is_closed)
    }

    pub(super) fn bytes(&self, direction: Direction) -> &AtomicU64 {
        match direction {
            Direction::Requests => &self.requests,
            Direction::Replies => &self.replies,
        }
    }

    pub(super) fn count(&self, direction: Direction, bytes: usize) {
        self.bytes(direction).fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn add(&self, pair: &Arc<SocketPair>) {
        let mut pairs = self.pairs.lock().expect("not poisoned");
        pairs.retain(|pair| pair.strong_count() > 0);
        pairs.push(Arc::downgrade(pair));
    }

    pub(super) fn keep(&self, threads: impl IntoIterator<Item = JoinHandle<()>>) {
        let mut kept = self.threads.lock().expect("not poisoned");
        kept.retain(|thread| !thread.is_finished());
        kept.extend(threads);
    }

    pub(super) fn open(&self) -> usize {
        let pairs = self.pairs.lock().expect("not poisoned");
        pairs.iter().filter_map(Weak::upgrade).filter(|pair| !pair.is_over()).count()
    }

    pub(super) fn abort_all(&self) {
        let pairs = std::mem::take(&mut *self.pairs.lock().expect("not poisoned"));
        pairs.iter().filter_map(Weak::upgrade).for_each(|pair| pair.abort());
        self.changed.notify_all();
    }

    pub(super) fn join_all(&self) {
        let threads = std::mem::take(&mut *self.threads.lock().expect("not poisoned"));
        for thread in threads {
            let _ = thread.join();
        }
    }
}
