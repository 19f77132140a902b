//! The handle of the task that watches rules on disk.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use super::rule_source::RuleSource;
use super::state::RuleSourceState;
use super::watch::Watcher;
use super::watch_config::WatchConfig;

/// Watches one rules file or directory until it is dropped.
pub struct Reloader {
    trigger: Arc<Notify>,
    state: watch::Receiver<RuleSourceState>,
    task: AbortHandle,
}

impl Reloader {
    /// Starts to watch, on the runtime of the caller.
    pub fn start<S: RuleSource>(config: WatchConfig<S>) -> Reloader {
        let trigger = Arc::new(Notify::new());
        let (watcher, state) = Watcher::new(config, trigger.clone());
        Reloader { trigger, state, task: tokio::spawn(watcher.run()).abort_handle() }
    }

    /// Reloads at once, even if the stamp is unchanged. For SIGHUP; never waits.
    pub fn trigger(&self) {
        self.trigger.notify_one();
    }

    /// The state of the source.
    pub fn state(&self) -> watch::Receiver<RuleSourceState> {
        self.state.clone()
    }
}

impl Drop for Reloader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("state", &*self.state.borrow()).finish_non_exhaustive()
    }
}
