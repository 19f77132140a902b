//! The task that keeps a node up to date with its database.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tollgate_core::Clock;
use tollgate_rules::{Problem, lint_rule};
use tracing::{error, info, warn};

use super::load::{LoadContext, LoadExtent};
use super::state::{ChangeFeedState, SnapshotOrigin};
use super::{LoadedState, LocalCopy};
use crate::control::Quarantined;
use crate::{Control, Error, RecordKind, Result};

/// Activates what was loaded; false if that failed and the previous state stays active. Called outside the runtime,
/// where it may block.
pub type Adopt = Arc<dyn Fn(Arc<LoadedState>) -> bool + Send + Sync>;

/// Parameters of a [`ChangeFeed`].
pub struct ChangeFeedConfig {
    /// The database.
    pub control: Control,
    /// The copy on disk; none if the database itself is on this disk.
    pub copy: Option<LocalCopy>,
    /// What loading needs besides the tables.
    pub context: LoadContext,
    /// How often to look for changes without a notification.
    pub poll: Duration,
    /// The clock for [`ChangeFeedState::fresh_at`].
    pub clock: Arc<dyn Clock>,
    /// Activates what was loaded.
    pub adopt: Adopt,
}

/// How long to wait for the first reply of the database before the copy is used.
const FIRST_REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// Delay after a failed read: first and longest.
const RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// Shortest time between two reads; changes in between are read together.
const MIN_INTERVAL: Duration = Duration::from_millis(20);

/// Follows a database until dropped.
pub struct ChangeFeed {
    trigger: Arc<Notify>,
    state: watch::Receiver<ChangeFeedState>,
    task: AbortHandle,
}

impl ChangeFeed {
    /// Loads everything, from the database or else from the copy, and then follows the changes. Fails if neither can be
    /// read: a node without its rules must not start as if it had none.
    pub async fn start(config: ChangeFeedConfig) -> Result<ChangeFeed> {
        let (sender, state) = watch::channel(ChangeFeedState::default());
        let mut follower = Follower { config, state: sender, loaded: None, sql_edits: SqlEdits::default() };
        follower.load_first().await?;
        let trigger = Arc::new(Notify::new());
        let task = tokio::spawn(follower.run(trigger.clone())).abort_handle();
        Ok(ChangeFeed { trigger, state, task })
    }

    /// Looks for changes now. Never waits.
    pub fn trigger(&self) {
        self.trigger.notify_one();
    }

    /// A handle that triggers the same.
    pub fn trigger_handle(&self) -> Arc<Notify> {
        self.trigger.clone()
    }

    /// The state of the feed, to read or to wait on.
    pub fn state(&self) -> watch::Receiver<ChangeFeedState> {
        self.state.clone()
    }
}

impl Drop for ChangeFeed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for ChangeFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeFeed").field("state", &*self.state.borrow()).finish_non_exhaustive()
    }
}

struct Follower {
    config: ChangeFeedConfig,
    state: watch::Sender<ChangeFeedState>,
    loaded: Option<Arc<LoadedState>>,
    sql_edits: SqlEdits,
}

/// Progress of recording SQL edits.
#[derive(Default)]
struct SqlEdits {
    /// Edits are left, or their rows were locked.
    pending: bool,
    /// Why they could not be recorded, as logged.
    refused: Option<String>,
}

impl Follower {
    async fn load_first(&mut self) -> Result<()> {
        let ChangeFeedConfig { control, context, copy, .. } = &self.config;
        // No timeout once the database answers: a million clients take a while to read.
        let there = timeout(FIRST_REPLY_TIMEOUT, control.state()).await;
        let there = there.unwrap_or_else(|_| {
            Err(Error::Unavailable(format!("no reply within {} s", FIRST_REPLY_TIMEOUT.as_secs())))
        });
        let read = match there {
            Ok(_) => LoadedState::load(control, context).await,
            Err(error) => Err(error),
        };
        let why = match read {
            Ok(loaded) => {
                self.adopt(loaded, SnapshotOrigin::Database, LoadExtent::Full).await;
                return Ok(());
            }
            Err(error) => error,
        };
        let copied = match copy {
            Some(copy) => copy.read(context).await,
            None => None,
        };
        let Some(loaded) = copied else { return Err(why) };
        warn!(generation = loaded.state.generation, %why, "cannot read the database: started from the copy on disk");
        self.adopt(loaded, SnapshotOrigin::Copy, LoadExtent::Full).await;
        self.state.send_modify(|state| (state.unavailable, state.failures) = (Some(why.to_string()), 1));
        Ok(())
    }

    async fn run(mut self, trigger: Arc<Notify>) {
        let mut listener = self.config.control.listener();
        let mut pause = RETRY_DELAY.0;
        loop {
            let retrying = self.state.borrow().unavailable.is_some() || self.sql_edits.pending;
            let wait = if retrying { pause.min(self.config.poll) } else { self.config.poll };
            tokio::select! {
                () = sleep(wait) => {}
                () = listener.changed() => {}
                () = trigger.notified() => {}
            }
            pause = match self.poll().await {
                Ok(()) => RETRY_DELAY.0,
                Err(why) => {
                    self.report_failure(&why);
                    (pause * 2).min(RETRY_DELAY.1)
                }
            };
            sleep(MIN_INTERVAL).await;
        }
    }

    /// Reads the changes, if there are any.
    async fn poll(&mut self) -> Result<()> {
        self.record_sql_edits().await;
        let ChangeFeedConfig { control, context, .. } = &self.config;
        let next = match &self.loaded {
            Some(loaded) => loaded.load_changes(control, context).await?,
            None => Some((LoadedState::load(control, context).await?, LoadExtent::Full)),
        };
        if self.state.borrow().unavailable.is_some() {
            info!("the database answers again");
        }
        match next {
            Some((loaded, extent)) => self.adopt(loaded, SnapshotOrigin::Database, extent).await,
            None => self.mark_fresh(),
        }
        Ok(())
    }

    /// Records SQL edits as a generation before changes are read. A node without the right to write leaves this to
    /// others.
    async fn record_sql_edits(&mut self) {
        let (pending, refused) = match self.config.control.record_sql_edits().await {
            Ok(pending) => (pending, None),
            // Another transaction writes the same rows, or the database is unavailable, which the next read reports.
            Err(Error::Unavailable(_)) => (true, None),
            Err(why) => (false, Some(why.to_string())),
        };
        if let Some(why) = refused.as_ref().filter(|why| self.sql_edits.refused.as_ref() != Some(why)) {
            warn!(%why, "cannot record SQL edits: they wait for another node");
        }
        self.sql_edits = SqlEdits { pending, refused };
    }

    async fn adopt(&mut self, loaded: LoadedState, origin: SnapshotOrigin, extent: LoadExtent) {
        let loaded = Arc::new(loaded);
        let (adopt, adopted, before) = (self.config.adopt.clone(), loaded.clone(), self.loaded.clone());
        let put = tokio::task::spawn_blocking(move || {
            let in_force = adopt(adopted.clone());
            if in_force {
                log_warnings(&adopted, before.as_deref());
            }
            in_force
        });
        let put = put.await;
        if !put.unwrap_or(false) {
            let generation = loaded.state.generation;
            error!(generation, "cannot activate the loaded generation: the previous one stays in force");
            self.state.send_modify(|state| {
                state.failures += 1;
                state.unavailable = Some(format!("generation {generation} cannot be activated; see the log"));
            });
            return;
        }
        self.log_quarantined(&loaded);
        let (generation, quarantined) = (loaded.state.generation, loaded.quarantined.clone());
        self.state.send_modify(|state| {
            (state.origin, state.generation, state.quarantined) = (origin, generation, quarantined);
            state.refreshes += 1;
            state.full_loads += u64::from(extent == LoadExtent::Full);
        });
        self.loaded = Some(loaded);
        if origin == SnapshotOrigin::Database {
            self.mark_fresh();
            if let Some(copy) = &self.config.copy {
                copy.catch_up();
            }
        }
    }

    fn mark_fresh(&self) {
        let now = self.config.clock.wall().into();
        self.state.send_modify(|state| {
            (state.fresh_at, state.unavailable, state.origin) = (Some(now), None, SnapshotOrigin::Database)
        });
    }

    /// Logs a failure once; the loaded state stays active.
    fn report_failure(&self, why: &Error) {
        let text = why.to_string();
        if self.state.borrow().unavailable.as_ref() != Some(&text) {
            error!(why = %text, "cannot read the database: the loaded rules stay in force");
        }
        self.state.send_modify(|state| {
            state.failures += 1;
            state.unavailable = Some(text);
        });
    }

    /// Logs rows that are newly quarantined, each with its first reason and without its content.
    fn log_quarantined(&self, loaded: &LoadedState) {
        let state = self.state.borrow();
        let before: HashSet<&Quarantined> = state.quarantined.iter().collect();
        for bad in loaded.quarantined.iter().filter(|bad| !before.contains(bad)).take(LOGGED_MAX) {
            let why = bad.reasons.first().map_or("", |reason| reason.message.as_str());
            // The id of a client is its key, which is not logged.
            let id = if bad.kind == RecordKind::Client { "" } else { &bad.id };
            let (kind, namespace) = (bad.kind.name(), &bad.namespace);
            error!(kind, namespace, id, why, "invalid row left out");
        }
    }
}

/// Most quarantined rows, and most rules with warnings, to log at once; the API lists all.
const LOGGED_MAX: usize = 10;

/// Logs warnings about rules that are new or changed, each once: rows written with SQL have no response that could carry
/// them.
fn log_warnings(loaded: &LoadedState, before: Option<&LoadedState>) {
    let mut warned = loaded.namespaces.iter().flat_map(|(name, namespace)| {
        let before = before.and_then(|before| before.namespaces.get(name));
        let changed = namespace.changed_since(before);
        changed.filter_map(move |rule| Some((name, rule, lint_rule(rule).into_iter().next()?)))
    });
    for (namespace, rule, Problem { code, field, message, .. }) in warned.by_ref().take(LOGGED_MAX) {
        let id = rule.name.as_deref().unwrap_or_default();
        warn!(namespace, id, code, field, "{message}");
    }
    let more = warned.count();
    if more > 0 {
        warn!(more, "more rules have warnings; `tollgate rules list --json` shows them");
    }
}
