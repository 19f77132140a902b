//! The handle of the task that follows rules on disk.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tollgate_core::Clock;

use super::watch::{Pace, Watcher};
use super::watched::{Mark, Watched};
use super::{RuleSourceError, RuleSourceState, Source, Written};

/// Puts rules into force and answers their generation: `Engine::swap_rules`, and whatever else should know of it; or
/// says why they do not go together with others. Called off the runtime, where taking long holds nobody up.
pub type Apply<W = Written> = Arc<dyn Fn(W) -> Result<u64, RuleSourceError> + Send + Sync>;

/// What following a file takes, or a directory of them.
pub struct WatchConfig<S: Watched = Source> {
    /// The file.
    pub source: S,
    /// How often to look.
    pub pace: Pace,
    /// Tells when rules were loaded.
    pub clock: Arc<dyn Clock>,
    /// What becomes of new rules.
    pub apply: Apply<S::Written>,
    /// The content that is in force already, and its generation. Without one the first valid content is the first
    /// reload.
    pub in_force: Option<(Mark, u64)>,
}

/// Follows one rules file, or one directory, for as long as it lives.
pub struct Reloader {
    trigger: Arc<Notify>,
    state: watch::Receiver<RuleSourceState>,
    task: AbortHandle,
}

impl Reloader {
    /// Starts to follow, on the runtime of the caller.
    pub fn start<S: Watched>(following: WatchConfig<S>) -> Reloader {
        let trigger = Arc::new(Notify::new());
        let (follower, state) = Watcher::new(following, trigger.clone());
        Reloader { trigger, state, task: tokio::spawn(follower.run()).abort_handle() }
    }

    /// Reloads at once, also if the file looks unchanged. For SIGHUP; never waits.
    pub fn trigger(&self) {
        self.trigger.notify_one();
    }

    /// How things stand, to look at or to wait on.
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
