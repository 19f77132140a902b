//! Reads the journal into the store, before anything is served.

use std::io::ErrorKind;

use anyhow::{Context, Result, bail};
use tollgate_journal::{FileDisk, Journal, JournalConfig, JournalErrorKind, JournalReport};
use tollgate_service::secrets::{self, SecretKeys};
use tollgate_store::{Memory, RestoredQuotas};
use tracing::{error, info, warn};

use super::QuotaFiles;

/// A journal that was read, and is not written yet.
#[derive(Debug)]
pub(crate) struct OpenedQuotaJournal {
    pub(crate) journal: Journal<FileDisk>,
    pub(crate) files: QuotaFiles,
    /// The secret is to be kept before the first record.
    pub(crate) is_secret_new: bool,
}

impl OpenedQuotaJournal {
    /// Restores what the journal has and starts to track changes. A journal that cannot be read ends the start: all
    /// customers would have their quotas a second time.
    pub(crate) fn open(
        files: QuotaFiles,
        keys: &SecretKeys,
        is_secret_new: bool,
        memory: &Memory,
    ) -> Result<OpenedQuotaJournal> {
        memory.track_quotas();
        if !files.journal.exists() && files.secret.exists() {
            let journal = files.journal.display();
            warn!(%journal, "the secret of a quota journal is there, the journal is not: quotas start unused");
        }
        let config = JournalConfig { fingerprint: keys.journal_fingerprint(), salt: secrets::random()? };
        let mut restored = RestoredQuotas::default();
        let restore = |records: &[_]| {
            let RestoredQuotas { restored: more, over, full } = memory.restore_quotas(records);
            restored.restored += more;
            restored.over += over;
            restored.full += full;
        };
        let (journal, report) = Journal::open(FileDisk::new(files.journal.clone()), config, restore)
            .context("usage of quotas cannot be restored")?;
        log_restored(&files, report, restored, memory.quota_buckets());
        Ok(OpenedQuotaJournal { journal, files, is_secret_new })
    }

    /// Creates the files now rather than with the first usage, so that a second process in the same directory does not
    /// start. A disk that cannot be written yet is left to the writer, which tries again and reports it.
    pub(crate) fn claim(&mut self, keys: &SecretKeys) -> Result<()> {
        let prepared = self.files.create_directory().and_then(|()| match self.is_secret_new {
            true => keys.keep(&self.files.secret),
            false => Ok(()),
        });
        match prepared {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Ok(()),
            Err(_) => {
                bail!("another process has just started with {}: start this one again", self.files.secret.display())
            }
            Ok(()) => self.is_secret_new = false,
        }
        match self.journal.claim() {
            Err(error) if matches!(error.kind, JournalErrorKind::InUse) => {
                Err(error).context("usage of quotas cannot be kept")
            }
            _ => Ok(()),
        }
    }
}

fn log_restored(files: &QuotaFiles, report: JournalReport, restored: RestoredQuotas, buckets: u64) {
    let journal = files.journal.display();
    let JournalReport { records, damaged, torn_bytes } = report;
    if records > 0 {
        info!(%journal, buckets, records, "restored the usage of quotas");
    }
    if torn_bytes > 0 {
        warn!(%journal, bytes = torn_bytes, "the last write of the quota journal was cut short: less than a second of usage is lost");
    }
    if damaged > 0 {
        error!(%journal, records = damaged, "records of the quota journal are damaged: usage of as many buckets may be too low");
    }
    if restored.full > 0 {
        error!(%journal, records = restored.full, "not all quotas fit into max_memory: those without a bucket start unused; raise max_memory");
    }
}
