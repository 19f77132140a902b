//! Follows rules on disk by looking at them, twice a second: a file, or a directory of files.
//!
//! Looking beats being told. A notification is bound to an inode, and rules files change theirs: editors rename over
//! them, deployments swap a symbolic link, a ConfigMap flips the `..data` link two levels up; network file systems
//! notify nobody. One `stat` that follows links sees all of these alike, costs a few microseconds and never needs to be
//! set up again.
//!
//! A change is read once it has settled: two looks a moment apart agree. A file that never settles is read all the same
//! after a while. Content is compared by digest, so that a file touched, renamed or put back is no reload, and the same
//! mistake is reported once. Whatever goes wrong, the rules in force stay.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use tollgate_core::Clock;
use tracing::{error, info};

use super::error::{RuleSourceError, Unreadable};
use super::rule_source::{ContentFingerprint, ContentMark, FileStamp, RuleSource};
use super::state::RuleSourceState;
use super::watch_config::{Apply, Pace, WatchConfig};

type StampResult = Result<FileStamp, Unreadable>;

/// Why the file is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReloadCause {
    Changed,
    Requested,
}

/// The task behind a `Reloader`.
pub(super) struct Watcher<S: RuleSource> {
    source: Arc<S>,
    pace: Pace,
    clock: Arc<dyn Clock>,
    apply: Apply<S::Compiled>,
    trigger: Arc<Notify>,
    state: watch::Sender<RuleSourceState>,
    /// What the last look that was acted upon saw; `None` to look closer next time.
    seen: Option<StampResult>,
    /// What could be looked at and not be read, and why.
    unread: Option<(FileStamp, Unreadable)>,
    /// The content last tried, valid or not.
    tried: Option<ContentFingerprint>,
    /// The content in force.
    in_force: Option<ContentFingerprint>,
}

/// What came of reading the file.
enum ReloadAttempt {
    Same(FileStamp, ContentFingerprint),
    Loaded(ContentMark, u64),
    Invalid(FileStamp, ContentFingerprint, RuleSourceError),
    Failed(RuleSourceError),
}

impl<S: RuleSource> Watcher<S> {
    pub(super) fn new(config: WatchConfig<S>, trigger: Arc<Notify>) -> (Watcher<S>, watch::Receiver<RuleSourceState>) {
        let WatchConfig { source, pace, clock, apply, in_force } = config;
        let mut start = RuleSourceState::default();
        if let Some((mark, generation)) = in_force {
            let loaded_at = Some(clock.wall());
            start = RuleSourceState { generation: Some(generation), rules: mark.rules, loaded_at, reloads: 1, ..start };
        }
        let (state, receiver) = watch::channel(start);
        let mark = in_force.map(|(mark, _)| mark);
        let watcher = Watcher {
            source: Arc::new(source),
            pace,
            clock,
            apply,
            trigger,
            state,
            seen: mark.map(|mark| Ok(mark.stamp)),
            unread: None,
            tried: mark.map(|mark| mark.fingerprint),
            in_force: mark.map(|mark| mark.fingerprint),
        };
        (watcher, receiver)
    }

    pub(super) async fn run(mut self) {
        loop {
            let cause_of_wait = self.wait(self.pace.poll).await;
            let look = self.look().await;
            if cause_of_wait == ReloadCause::Changed && self.seen.as_ref() == Some(&look) {
                continue;
            }
            let (cause, settled, look) = match cause_of_wait {
                ReloadCause::Requested => (ReloadCause::Requested, true, look),
                ReloadCause::Changed => self.settle(look).await,
            };
            match look {
                Err(reason) => self.report_unreadable(reason, cause),
                Ok(stamp) => self.read(stamp, cause).await,
            }
            if !settled {
                self.seen = None;
            }
        }
    }

    /// Waits, or not any longer once somebody asks.
    async fn wait(&self, span: Duration) -> ReloadCause {
        tokio::select! {
            () = sleep(span) => ReloadCause::Changed,
            () = self.trigger.notified() => ReloadCause::Requested,
        }
    }

    /// Looks until two looks agree; answers the last one, and whether they did.
    async fn settle(&self, mut look: StampResult) -> (ReloadCause, bool, StampResult) {
        let deadline = Instant::now() + self.pace.settle_max;
        loop {
            let cause = self.wait(self.pace.settle).await;
            let again = self.look().await;
            let settled = again == look;
            if settled || cause == ReloadCause::Requested || Instant::now() >= deadline {
                return (cause, settled, again);
            }
            look = again;
        }
    }

    /// Off the runtime, as every touch of the file: a network file system may take its time.
    async fn look(&self) -> StampResult {
        let source = self.source.clone();
        let look = tokio::task::spawn_blocking(move || source.stamp()).await;
        self.state.send_modify(|state| state.looks += 1);
        look.unwrap_or_else(|error| Err(Unreadable::Refused(error.to_string())))
    }

    /// Reads the file and, if its content is new, tries it.
    async fn read(&mut self, stamp: FileStamp, cause: ReloadCause) {
        let (source, apply) = (self.source.clone(), self.apply.clone());
        // Content that failed is tried again when somebody asks: they want to hear why.
        let tried = self.tried.filter(|_| cause == ReloadCause::Changed);
        let known = [self.in_force, tried];
        let attempt = tokio::task::spawn_blocking(move || attempt(&*source, &apply, known)).await;
        self.seen = Some(Ok(stamp)); // what panicked is not tried again before it changes
        match attempt.unwrap_or(ReloadAttempt::Failed(RuleSourceError::Panicked)) {
            ReloadAttempt::Failed(RuleSourceError::Unreadable(reason)) => self.retry_unreadable(stamp, reason, cause),
            attempt => self.conclude(attempt, cause),
        }
    }

    fn conclude(&mut self, attempt: ReloadAttempt, cause: ReloadCause) {
        self.unread = None;
        match attempt {
            ReloadAttempt::Same(stamp, fingerprint) => self.unchanged(stamp, fingerprint, cause),
            ReloadAttempt::Loaded(mark, generation) => self.loaded(mark, generation),
            // What stands in its way may go without this changing: it is tried again at every look, and told once.
            ReloadAttempt::Invalid(_, _, error @ RuleSourceError::Conflict(_)) => {
                self.seen = None;
                if cause == ReloadCause::Requested || self.state.borrow().error != Some(error.to_string()) {
                    self.fail(&error);
                }
            }
            ReloadAttempt::Invalid(stamp, fingerprint, error) => {
                self.seen = Some(Ok(stamp));
                self.tried = Some(fingerprint);
                self.fail(&error);
            }
            ReloadAttempt::Failed(error) => self.fail(&error),
        }
    }

    /// The content was tried before.
    fn unchanged(&mut self, stamp: FileStamp, fingerprint: ContentFingerprint, cause: ReloadCause) {
        self.seen = Some(Ok(stamp));
        let back = self.in_force == Some(fingerprint);
        let wrong = self.state.borrow().error.is_some();
        if cause == ReloadCause::Requested {
            info!(file = %self.source.path().display(), "rules unchanged");
        } else if back && wrong {
            info!(file = %self.source.path().display(), "what is there is again what is in force");
        }
        self.tried = Some(fingerprint);
        self.state.send_modify(|state| {
            state.attempts += 1;
            if back {
                state.error = None;
            }
        });
    }

    fn loaded(&mut self, mark: ContentMark, generation: u64) {
        self.seen = Some(Ok(mark.stamp));
        self.tried = Some(mark.fingerprint);
        self.in_force = Some(mark.fingerprint);
        let (file, rules) = (self.source.path().display(), mark.rules);
        info!(%file, generation, rules, "rules loaded");
        let loaded_at = Some(self.clock.wall());
        self.state.send_modify(|state| {
            (state.generation, state.rules, state.loaded_at, state.error) = (Some(generation), rules, loaded_at, None);
            (state.attempts, state.reloads) = (state.attempts + 1, state.reloads + 1);
        });
    }

    /// The file is there and cannot be read. Said once while both stay as they are, and tried again at every look: a
    /// stamp does not tell when reading it begins to work.
    fn retry_unreadable(&mut self, stamp: FileStamp, reason: Unreadable, cause: ReloadCause) {
        if reason == Unreadable::Changing {
            self.seen = None;
            return;
        }
        let unread = Some((stamp, reason.clone()));
        if self.unread == unread && cause == ReloadCause::Changed {
            self.seen = Some(Err(reason));
        } else {
            self.report_unreadable(reason, cause);
            self.unread = unread;
        }
    }

    /// The file is gone, or became something else. Said once; what was tried before is tried anew when it comes back.
    fn report_unreadable(&mut self, reason: Unreadable, cause: ReloadCause) {
        let look = Some(Err(reason.clone()));
        if self.seen == look && cause == ReloadCause::Changed {
            return;
        }
        self.seen = look;
        self.unread = None;
        self.tried = self.in_force;
        self.fail(&RuleSourceError::Unreadable(reason));
    }

    fn fail(&mut self, reason: &RuleSourceError) {
        let text = reason.to_string();
        error!(file = %self.source.path().display(), problem = %text, "rules not loaded; those in force stay");
        self.state.send_modify(|state| {
            state.attempts += 1;
            state.failures += 1;
            state.held_back += u64::from(matches!(reason, RuleSourceError::Shrunk(_)));
            state.panics += u64::from(*reason == RuleSourceError::Panicked);
            state.error = Some(text);
        });
    }
}

/// Reads, compares, compiles and applies; blocking.
fn attempt<S: RuleSource>(
    source: &S,
    apply: &Apply<S::Compiled>,
    known: [Option<ContentFingerprint>; 2],
) -> ReloadAttempt {
    let content = match source.read() {
        Ok(content) => content,
        Err(reason) => return ReloadAttempt::Failed(reason.into()),
    };
    let (stamp, fingerprint) = (content.stamp, content.fingerprint);
    if known.contains(&Some(fingerprint)) {
        return ReloadAttempt::Same(stamp, fingerprint);
    }
    if S::is_empty(&content.data) {
        return ReloadAttempt::Failed(Unreadable::Emptied.into());
    }
    let applied = source.compile(&content.data).and_then(|written| {
        let mark = ContentMark { fingerprint, stamp, rules: S::rules(&written) };
        Ok((mark, apply(written)?))
    });
    match applied {
        Ok((mark, generation)) => ReloadAttempt::Loaded(mark, generation),
        Err(error) => ReloadAttempt::Invalid(stamp, fingerprint, error),
    }
}
