//! Watches rules on disk by polling, twice a second: a file, or a directory of files.
//!
//! Polling is more robust than notifications. Those are bound to an inode, and rules files change theirs: editors
//! rename over them, deployments swap a symbolic link, a ConfigMap flips the `..data` link two levels up; network file
//! systems send none. One `stat` that follows links sees all of these, costs a few microseconds and needs no set-up.
//!
//! A change is read once two checks agree. A file that never settles is read after a while all the same. Content is
//! compared by digest, so that a file touched, renamed or restored is no reload, and the same error is reported once.
//! After any error the active rules stay.

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

/// Why a source is read.
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
    /// The result of the last check that was acted upon; `None` to read again at the next one.
    seen: Option<StampResult>,
    /// The stamp of a file that could not be read, and why.
    unread: Option<(FileStamp, Unreadable)>,
    /// The last content that was tried, valid or not.
    tried: Option<ContentFingerprint>,
    /// The active content.
    in_force: Option<ContentFingerprint>,
}

/// The result of reading a source.
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

    /// Waits for `span`, or until a reload is requested.
    async fn wait(&self, span: Duration) -> ReloadCause {
        tokio::select! {
            () = sleep(span) => ReloadCause::Changed,
            () = self.trigger.notified() => ReloadCause::Requested,
        }
    }

    /// Checks until two checks agree; returns the last one, and whether they did.
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

    /// On a blocking thread, as all file access: a network file system may be slow.
    async fn look(&self) -> StampResult {
        let source = self.source.clone();
        let look = tokio::task::spawn_blocking(move || source.stamp()).await;
        self.state.send_modify(|state| state.looks += 1);
        look.unwrap_or_else(|error| Err(Unreadable::Refused(error.to_string())))
    }

    /// Reads the source and applies new content.
    async fn read(&mut self, stamp: FileStamp, cause: ReloadCause) {
        let (source, apply) = (self.source.clone(), self.apply.clone());
        // A requested reload tries failed content again, to report why it fails.
        let tried = self.tried.filter(|_| cause == ReloadCause::Changed);
        let known = [self.in_force, tried];
        let attempt = tokio::task::spawn_blocking(move || attempt(&*source, &apply, known)).await;
        self.seen = Some(Ok(stamp)); // content that panicked is not tried again before it changes
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
            // The conflict may end without a change here: tried again at every check, reported once.
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

    /// The content was tried before: nothing to apply.
    fn unchanged(&mut self, stamp: FileStamp, fingerprint: ContentFingerprint, cause: ReloadCause) {
        self.seen = Some(Ok(stamp));
        let back = self.in_force == Some(fingerprint);
        let wrong = self.state.borrow().error.is_some();
        if cause == ReloadCause::Requested {
            info!(file = %self.source.path().display(), "rules unchanged");
        } else if back && wrong {
            info!(file = %self.source.path().display(), "rules file matches the active version again");
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

    /// The file exists and cannot be read. Reported once per stamp and reason, and tried again at every check: the
    /// stamp does not change when reading becomes possible.
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

    /// The file is gone or of another type. Reported once; when it is back, failed content is tried again.
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
        error!(file = %self.source.path().display(), problem = %text, "rules not loaded; the active rules stay");
        self.state.send_modify(|state| {
            state.attempts += 1;
            state.failures += 1;
            state.held_back += u64::from(matches!(reason, RuleSourceError::Shrunk(_)));
            state.panics += u64::from(*reason == RuleSourceError::Panicked);
            state.error = Some(text);
        });
    }
}

/// Reads, compares, compiles and applies. Blocks.
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
