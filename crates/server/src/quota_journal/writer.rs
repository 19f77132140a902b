//! The thread that writes the journal: a disk that hangs delays it and nothing else.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use tollgate_engine::Engine;
use tollgate_journal::FileDisk;
use tollgate_service::secrets::SecretKeys;
use tollgate_service::store::ConfiguredStore;
use tollgate_telemetry::LogThrottle;
use tracing::{error, info};

use super::flush::QuotaFlusher;
use super::{OpenedQuotaJournal, QuotaJournalMetrics};

/// How often changes are written: a quarter of the most that a crash may lose, because a flush takes time, too.
const FLUSH_INTERVAL: Duration = Duration::from_millis(250);

/// Writes the journal until it is closed.
#[derive(Debug)]
pub(crate) struct QuotaJournalWriter {
    /// Dropped to end the thread.
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl QuotaJournalWriter {
    /// Starts the thread.
    pub(crate) fn start(
        opened: OpenedQuotaJournal,
        keys: Arc<SecretKeys>,
        engine: Arc<Engine<ConfiguredStore>>,
        metrics: Arc<QuotaJournalMetrics>,
    ) -> Result<QuotaJournalWriter> {
        let OpenedQuotaJournal { journal, files, is_secret_new } = opened;
        let name = files.journal.display().to_string();
        let prepare = move || {
            files.create_directory()?;
            if is_secret_new { keys.keep(&files.secret) } else { Ok(()) }
        };
        let flusher = QuotaFlusher::new(journal, metrics, prepare);
        let (stop, stopped) = mpsc::channel();
        let run = move || {
            let Some(memory) = engine.store().in_process() else { return };
            let mut flusher: QuotaFlusher<FileDisk> = flusher;
            let throttle = LogThrottle::by_the_minute();
            let mut failing = false;
            while stopped.recv_timeout(FLUSH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                match flusher.flush(memory) {
                    Err(error) => {
                        failing = true;
                        if let Some(unsaid) = throttle.admit("quota journal") {
                            error!(journal = name, %error, unsaid, "cannot write the usage of quotas: a restart would lose it; trying again");
                        }
                    }
                    Ok(()) if std::mem::take(&mut failing) => {
                        info!(journal = name, "the usage of quotas is written again")
                    }
                    Ok(()) => {}
                }
            }
            if let Err(error) = flusher.finish(memory) {
                error!(journal = name, %error, "cannot write the last usage of quotas: it is lost");
            }
        };
        let thread = thread::Builder::new().name("quota-journal".to_owned()).spawn(run);
        Ok(QuotaJournalWriter { stop, thread: thread.context("cannot start the thread of the quota journal")? })
    }

    /// Writes what is left and ends the thread; blocks until that is done.
    pub(crate) fn close(self) {
        drop(self.stop);
        let _ = self.thread.join(); // a panic was counted and logged
    }
}
