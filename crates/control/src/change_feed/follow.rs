//! The task that keeps a node up to date with its database.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tollgate_core::Clock;
use tracing::{error, info, warn};

use super::load::{LoadContext, LoadExtent};
use super::state::{ChangeFeedState, SnapshotOrigin};
use super::{LoadedState, LocalCopy};
use crate::control::Quarantined;
use crate::{Control, Error, RecordKind, Result};

/// Puts what was read into force; false if that could not be done, and what was in force stays. Called off the runtime,
/// where taking long holds nobody up.
pub type Adopt = Arc<dyn Fn(Arc<LoadedState>) -> bool + Send + Sync>;

/// What config takes.
pub struct ChangeFeedConfig {
    /// The database.
    pub control: Control,
    /// The copy on disk; none if the database is on this disk itself.
    pub copy: Option<LocalCopy>,
    /// What reading needs besides the tables.
    pub context: LoadContext,
    /// How often to look, though nobody told of anything.
    pub poll: Duration,
    /// Tells how fresh things are.
    pub clock: Arc<dyn Clock>,
    /// What becomes of what was read.
    pub adopt: Adopt,
}

/// How long the database may take to answer at all before the copy is taken instead.
const FIRST_REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait after a look that failed, at first and at most.
const RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// Changes that come one after the other are read together: so many looks in a second are enough.
const MIN_INTERVAL: Duration = Duration::from_millis(20);

/// Follows a database for as long as it lives.
pub struct ChangeFeed {
    trigger: Arc<Notify>,
    state: watch::Receiver<ChangeFeedState>,
    task: AbortHandle,
}

impl ChangeFeed {
    /// Reads what there is, from the database or else from the copy, and goes on config. An error if neither can be
    /// read: a node that does not know its rules must not start as if it had none.
    pub async fn start(config: ChangeFeedConfig) -> Result<ChangeFeed> {
        let (sender, state) = watch::channel(ChangeFeedState::default());
        let mut follower = Follower { config, state: sender, loaded: None, sql_edits: SqlEdits::default() };
        follower.first_look().await?;
        let trigger = Arc::new(Notify::new());
        let task = tokio::spawn(follower.run(trigger.clone())).abort_handle();
        Ok(ChangeFeed { trigger, state, task })
    }

    /// Looks at once. Never waits.
    pub fn trigger(&self) {
        self.trigger.notify_one();
    }

    /// The same, for somebody who keeps it.
    pub fn trigger_handle(&self) -> Arc<Notify> {
        self.trigger.clone()
    }

    /// How things stand, to look at or to wait on.
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

/// How taking over what was written with SQL goes.
#[derive(Default)]
struct SqlEdits {
    /// Some are left, or were in use.
    pending: bool,
    /// Why they could not be taken over, as it was logged.
    refused: Option<String>,
}

impl Follower {
    async fn first_look(&mut self) -> Result<()> {
        let ChangeFeedConfig { control, context, copy, .. } = &self.config;
        // Who answers is given the time that it takes: a million clients take a while.
        let there = timeout(FIRST_REPLY_TIMEOUT, control.state()).await;
        let there = there
            .unwrap_or_else(|_| Err(Error::Unavailable(format!("not within {} s", FIRST_REPLY_TIMEOUT.as_secs()))));
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
        let kept = match copy {
            Some(copy) => copy.read(context).await,
            None => None,
        };
        let Some(loaded) = kept else { return Err(why) };
        warn!(generation = loaded.state.generation, %why, "cannot read the database: started with the copy of what it said last");
        self.adopt(loaded, SnapshotOrigin::Copy, LoadExtent::Full).await;
        self.state.send_modify(|state| (state.unavailable, state.failures) = (Some(why.to_string()), 1));
        Ok(())
    }

    async fn run(mut self, trigger: Arc<Notify>) {
        let mut listener = self.config.control.listener();
        let mut pause = RETRY_DELAY.0;
        loop {
            let in_haste = self.state.borrow().unavailable.is_some() || self.sql_edits.pending;
            let wait = if in_haste { pause.min(self.config.poll) } else { self.config.poll };
            tokio::select! {
                () = sleep(wait) => {}
                () = listener.changed() => {}
                () = trigger.notified() => {}
            }
            pause = match self.look().await {
                Ok(()) => RETRY_DELAY.0,
                Err(why) => {
                    self.lose(&why);
                    (pause * 2).min(RETRY_DELAY.1)
                }
            };
            sleep(MIN_INTERVAL).await;
        }
    }

    /// Reads what changed, if anything did.
    async fn look(&mut self) -> Result<()> {
        self.take_over_sql_edits().await;
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
            None => self.fresh(),
        }
        Ok(())
    }

    /// What was written with SQL becomes a generation before that is looked for. A node that may not write leaves this to
    /// the others.
    async fn take_over_sql_edits(&mut self) {
        let (pending, refused) = match self.config.control.take_over_sql_edits().await {
            Ok(pending) => (pending, None),
            // Another transaction is writing the same rows, or there is no database, which is found out next.
            Err(Error::Unavailable(_)) => (true, None),
            Err(why) => (false, Some(why.to_string())),
        };
        if let Some(why) = refused.as_ref().filter(|why| self.sql_edits.refused.as_ref() != Some(why)) {
            warn!(%why, "what was written with SQL waits: this node cannot take it over");
        }
        self.sql_edits = SqlEdits { pending, refused };
    }

    async fn adopt(&mut self, loaded: LoadedState, origin: SnapshotOrigin, extent: LoadExtent) {
        let loaded = Arc::new(loaded);
        let (adopt, adopted) = (self.config.adopt.clone(), loaded.clone());
        let put = tokio::task::spawn_blocking(move || adopt(adopted)).await;
        if !put.unwrap_or(false) {
            let generation = loaded.state.generation;
            error!(generation, "what the database says cannot be put into force: what it said before stays");
            self.state.send_modify(|state| {
                state.failures += 1;
                state.unavailable = Some(format!("generation {generation} cannot be put into force; the log says why"));
            });
            return;
        }
        self.tell_of_quarantine(&loaded);
        let (generation, quarantined) = (loaded.state.generation, loaded.quarantined.clone());
        self.state.send_modify(|state| {
            (state.origin, state.generation, state.quarantined) = (origin, generation, quarantined);
            state.refreshes += 1;
            state.full_loads += u64::from(extent == LoadExtent::Full);
        });
        self.loaded = Some(loaded);
        if origin == SnapshotOrigin::Database {
            self.fresh();
            if let Some(copy) = &self.config.copy {
                copy.catch_up();
            }
        }
    }

    fn fresh(&self) {
        let now = self.config.clock.wall().into();
        self.state.send_modify(|state| {
            (state.fresh_at, state.unavailable, state.origin) = (Some(now), None, SnapshotOrigin::Database)
        });
    }

    /// Said once; those in force stay.
    fn lose(&self, why: &Error) {
        let text = why.to_string();
        if self.state.borrow().unavailable.as_ref() != Some(&text) {
            error!(why = %text, "cannot read the database: what it said last stays in force");
        }
        self.state.send_modify(|state| {
            state.failures += 1;
            state.unavailable = Some(text);
        });
    }

    /// Rows that were not in quarantine before, each with its first reason. Never what they hold.
    fn tell_of_quarantine(&self, loaded: &LoadedState) {
        let state = self.state.borrow();
        let before: HashSet<&Quarantined> = state.quarantined.iter().collect();
        for bad in loaded.quarantined.iter().filter(|bad| !before.contains(bad)).take(LOGGED_MAX) {
            let why = bad.reasons.first().map_or("", |reason| reason.message.as_str());
            // The id of a client is its key, which logs do not tell.
            let id = if bad.kind == RecordKind::Client { "" } else { &bad.id };
            let (kind, namespace) = (bad.kind.name(), &bad.namespace);
            error!(kind, namespace, id, why, "a row cannot be used and is left out");
        }
    }
}

/// Rows in quarantine that are logged at once; the API tells all of them.
const LOGGED_MAX: usize = 10;
