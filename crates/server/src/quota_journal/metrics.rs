//! Metrics of the journal.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Clock, Time};
use tollgate_telemetry::{MetricFamilies, MetricsPage};

/// Figures of the journal, written by its thread alone.
pub(crate) struct QuotaJournalMetrics {
    /// Records written.
    pub(crate) records: AtomicU64,
    /// Size of the file.
    pub(crate) bytes: AtomicU64,
    /// Writes, syncs and replacements that failed.
    pub(crate) errors: AtomicU64,
    /// Files that were replaced by shorter ones.
    pub(crate) rewrites: AtomicU64,
    /// When all usage was last on disk, in nanoseconds.
    saved_at: AtomicU64,
    clock: Arc<dyn Clock>,
}

impl QuotaJournalMetrics {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> QuotaJournalMetrics {
        let saved_at = AtomicU64::new(clock.now().nanos());
        let [records, bytes, errors, rewrites] = [(); 4].map(|()| AtomicU64::new(0));
        QuotaJournalMetrics { records, bytes, errors, rewrites, saved_at, clock }
    }

    /// Notes that all usage up to now is on disk.
    pub(super) fn note_saved(&self) {
        self.saved_at.store(self.clock.now().nanos(), Ordering::Relaxed);
    }
}

impl MetricFamilies for QuotaJournalMetrics {
    fn write(&self, page: &mut MetricsPage<'_>) -> fmt::Result {
        let of = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let age = self.clock.now().since(Time::from_nanos(of(&self.saved_at)));
        page.counter("tollgate_quota_journal_records", "Records written to the quota journal", of(&self.records))?;
        page.gauge("tollgate_quota_journal_bytes", "Size of the quota journal", of(&self.bytes))?;
        page.gauge(
            "tollgate_quota_journal_age_seconds",
            "How long ago all usage of quotas was on disk: what a crash would lose",
            age.nanos() as f64 / 1e9,
        )?;
        page.counter("tollgate_quota_journal_errors", "Writes of the quota journal that failed", of(&self.errors))?;
        page.counter(
            "tollgate_quota_journal_rewrites",
            "Times the quota journal was replaced by a shorter file",
            of(&self.rewrites),
        )
    }
}

impl fmt::Debug for QuotaJournalMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuotaJournalMetrics").field("errors", &self.errors).finish_non_exhaustive()
    }
}
