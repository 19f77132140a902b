//! Reads the journal into the store, before anything is served.

use anyhow::{Context, Result};
use tollgate_journal::{FileDisk, Journal, JournalConfig, JournalReport};
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
