//! One flush: what changed is appended and synced, and a file that has grown long is replaced step by step.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tollgate_journal::{Journal, JournalDisk};
use tollgate_store::Memory;

use super::QuotaJournalMetrics;

/// Records copied into the next file between two flushes: about 7 MB, so that a flush is never late.
const COPIED_MAX: usize = 128 << 10;

/// Writes the changed buckets of a store to a journal.
pub(super) struct QuotaFlusher<D: JournalDisk> {
    pub(super) journal: Journal<D>,
    pub(super) metrics: Arc<QuotaJournalMetrics>,
    /// Run before the first record; `None` once it has succeeded.
    pub(super) prepare: Option<Box<dyn FnMut() -> io::Result<()> + Send>>,
    /// The shard that the rewrite under way copies next.
    next_shard: usize,
}

impl<D: JournalDisk> QuotaFlusher<D> {
    pub(super) fn new(
        journal: Journal<D>,
        metrics: Arc<QuotaJournalMetrics>,
        prepare: impl FnMut() -> io::Result<()> + Send + 'static,
    ) -> QuotaFlusher<D> {
        metrics.bytes.store(journal.bytes(), Ordering::Relaxed);
        QuotaFlusher { journal, metrics, prepare: Some(Box::new(prepare)), next_shard: 0 }
    }

    /// Writes what changed and syncs once; then takes one step of a rewrite, if one is due. Decisions never wait for
    /// it: the store is locked only while the buckets of a shard are copied.
    pub(super) fn flush(&mut self, memory: &Memory) -> io::Result<()> {
        let saved = self.save(memory);
        let rewritten = self.rewrite_step(memory, COPIED_MAX);
        self.note(saved.and(rewritten))
    }

    /// The last flush: if an earlier sync failed, the whole file is written anew.
    pub(super) fn finish(&mut self, memory: &Memory) -> io::Result<()> {
        let mut saved = self.save(memory);
        if self.journal.is_suspect() {
            saved = self.begin(usize::MAX, memory);
        }
        self.note(saved)
    }

    fn note(&self, result: io::Result<()>) -> io::Result<()> {
        self.metrics.bytes.store(self.journal.bytes(), Ordering::Relaxed);
        match &result {
            Ok(()) if !self.journal.is_suspect() => self.metrics.note_saved(),
            Ok(()) => {}
            Err(_) => _ = self.metrics.errors.fetch_add(1, Ordering::Relaxed),
        }
        result
    }

    fn save(&mut self, memory: &Memory) -> io::Result<()> {
        let mut written = 0;
        let saved = memory.write_changed_quotas(|buckets| {
            if let Some(prepare) = &mut self.prepare {
                prepare()?;
                self.prepare = None;
            }
            self.journal.append(buckets)?;
            written += buckets.len() as u64;
            Ok(())
        });
        self.metrics.records.fetch_add(written, Ordering::Relaxed);
        // Also after an error: the shards before it were written.
        let synced = if written > 0 { self.journal.sync() } else { Ok(()) };
        saved.and(synced)
    }

    fn rewrite_step(&mut self, memory: &Memory, most: usize) -> io::Result<()> {
        match self.journal.is_rewriting() {
            true => self.copy(memory, most),
            false if self.journal.wants_rewrite(memory.quota_buckets()) => self.begin(most, memory),
            false => Ok(()),
        }
    }

    fn begin(&mut self, most: usize, memory: &Memory) -> io::Result<()> {
        self.next_shard = 0;
        self.journal.begin_rewrite()?;
        self.copy(memory, most)
    }

    /// Copies shards until `most` records are copied, and ends the rewrite after the last.
    fn copy(&mut self, memory: &Memory, most: usize) -> io::Result<()> {
        let (mut buckets, mut copied) = (Vec::new(), 0);
        while self.next_shard < memory.shards() && copied < most {
            buckets.clear();
            memory.copy_quotas(self.next_shard, &mut buckets);
            self.journal.copy(&buckets)?;
            self.next_shard += 1;
            copied += buckets.len();
        }
        if self.next_shard >= memory.shards() {
            self.journal.finish_rewrite()?;
            self.metrics.rewrites.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
