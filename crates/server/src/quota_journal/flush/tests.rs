//! Tests of flushes: a store on a manual clock, a journal in a temporary directory.

use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use tollgate_core::{Ask, Charge, Digest, Limit, ManualClock, Quota, Span, Time};
use tollgate_journal::{FileDisk, JournalConfig};
use tollgate_store::{MemoryConfig, Outcomes};

use super::*;

const START: Time = Time::from_secs(1_000);

/// A process: its store, restored from the journal, and what writes it.
struct Process {
    memory: Memory,
    clock: ManualClock,
    flusher: QuotaFlusher<FileDisk>,
}

impl Process {
    fn start(dir: &Path, now: Time) -> Process {
        Process::with_prepare(dir, now, || Ok(()))
    }

    fn with_prepare(dir: &Path, now: Time, prepare: impl FnMut() -> io::Result<()> + Send + 'static) -> Process {
        let clock = ManualClock::at(now);
        let memory = Memory::with_clock(MemoryConfig { shards: 4, ..MemoryConfig::default() }, Arc::new(clock.clone()));
        memory.track_quotas();
        let config = JournalConfig { fingerprint: [1; 16], salt: now.nanos() };
        let disk = FileDisk::new(dir.join("tollgate.quotas"));
        let (journal, _) = Journal::open(disk, config, |records| _ = memory.restore_quotas(records)).unwrap();
        let metrics = Arc::new(QuotaJournalMetrics::new(Arc::new(clock.clone())));
        Process { memory, clock, flusher: QuotaFlusher::new(journal, metrics, prepare) }
    }

    fn ask(&self, n: u64, ask: Ask) -> u64 {
        let limit = Limit::Quota(Quota::new(1_000_000, START, Time::from_secs(2_000), Time::from_secs(3_000)).unwrap());
        let bucket = Digest([n.wrapping_mul(0x9e37_79b9_7f4a_7c15), n | 1 << 63]);
        let mut outcomes = Outcomes::new();
        let _ = self.memory.take_now(&[Charge { ask, ..Charge::new(bucket, limit, 0) }], &mut outcomes);
        outcomes[0].used
    }

    fn charge(&self, n: u64, cost: u64) {
        self.ask(n, Ask::Consume(cost));
    }

    fn used(&self, n: u64) -> u64 {
        self.ask(n, Ask::Peek(0))
    }

    fn flush(&mut self) {
        self.flusher.flush(&self.memory).unwrap();
    }
}

fn dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn usage_survives_and_unwritten_usage_does_not() {
    let dir = dir();
    let mut process = Process::start(dir.path(), START);
    process.charge(1, 3);
    process.charge(2, 4);
    process.flush();
    process.charge(1, 5);
    drop(process); // killed
    let mut process = Process::start(dir.path(), START);
    assert_eq!((process.used(1), process.used(2)), (3, 4));
    process.charge(1, 5);
    process.flusher.finish(&process.memory).unwrap();
    drop(process);
    let process = Process::start(dir.path(), START);
    assert_eq!((process.used(1), process.used(2)), (8, 4), "an orderly end loses nothing");
}

#[test]
fn a_period_that_ended_while_the_node_was_down_starts_unused() {
    let dir = dir();
    let mut process = Process::start(dir.path(), START);
    process.charge(1, 3);
    process.flush();
    drop(process);
    let process = Process::start(dir.path(), Time::from_secs(2_000));
    assert_eq!((process.used(1), process.memory.quota_buckets()), (0, 0));
}

#[test]
fn nothing_is_written_without_a_change() {
    let dir = dir();
    let mut process = Process::start(dir.path(), START);
    process.flush();
    assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    process.charge(1, 1);
    (0..10).for_each(|_| process.flush());
    assert_eq!(process.flusher.metrics.records.load(Ordering::Relaxed), 1);
}

#[test]
fn the_file_stays_within_a_multiple_of_the_live_state() {
    let dir = dir();
    let mut process = Process::start(dir.path(), START);
    for _ in 0..500 {
        (0..100).for_each(|n| process.charge(n, 1));
        process.flush();
    }
    let metrics = process.flusher.metrics.clone();
    assert_eq!(metrics.records.load(Ordering::Relaxed), 50_000);
    assert!(metrics.rewrites.load(Ordering::Relaxed) >= 10, "{metrics:?}");
    assert!(process.flusher.journal.records() < 5_000, "{:?}", process.flusher.journal);
    drop(process);
    let process = Process::start(dir.path(), START);
    assert!((0..100).all(|n| process.used(n) == 500));
}

#[test]
fn a_rewrite_in_small_steps_keeps_what_changes_between_them() {
    let dir = dir();
    let mut process = Process::start(dir.path(), START);
    (0..1_000).for_each(|n| process.charge(n, 1));
    process.flush();
    process.flusher.begin(1, &process.memory).unwrap();
    let mut steps = 1;
    while process.flusher.journal.is_rewriting() {
        (0..1_000).step_by(7).for_each(|n| process.charge(n, 1));
        process.flusher.save(&process.memory).unwrap();
        process.flusher.copy(&process.memory, 1).unwrap();
        steps += 1;
    }
    assert_eq!(steps, process.memory.shards());
    drop(process);
    let process = Process::start(dir.path(), START);
    for n in 0..1_000 {
        assert_eq!(process.used(n), if n % 7 == 0 { steps as u64 } else { 1 }, "bucket {n}");
    }
}

#[test]
fn a_failed_flush_is_counted_and_repeated() {
    let dir = dir();
    let mut attempts = 0;
    let mut process = Process::with_prepare(dir.path(), START, move || {
        attempts += 1;
        if attempts < 3 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    });
    process.charge(1, 7);
    process.clock.advance(Span::from_secs(1));
    assert!(process.flusher.flush(&process.memory).is_err());
    assert!(process.flusher.flush(&process.memory).is_err());
    process.charge(2, 8);
    process.flush();
    assert_eq!(process.flusher.metrics.errors.load(Ordering::Relaxed), 2);
    drop(process);
    let process = Process::start(dir.path(), START);
    assert_eq!((process.used(1), process.used(2)), (7, 8));
}

#[test]
fn a_refund_and_a_reset_survive() {
    let dir = dir();
    let mut process = Process::start(dir.path(), START);
    process.charge(1, 7);
    process.flush();
    let limit = Limit::Quota(Quota::new(1_000_000, START, Time::from_secs(2_000), Time::from_secs(3_000)).unwrap());
    let bucket = Digest([0x9e37_79b9_7f4a_7c15, 1 | 1 << 63]);
    process.memory.forget_now(&[Charge::new(bucket, limit, 0)]);
    process.flush();
    drop(process);
    assert_eq!(Process::start(dir.path(), START).used(1), 0);
}
