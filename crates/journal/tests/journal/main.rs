//! The journal over real files: what is read back, and what faults of the disk cost.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod faulty_disk;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tollgate_core::{Digest, QuotaBucket, QuotaUse, Span, Time};
use tollgate_journal::{FileDisk, Journal, JournalConfig, JournalError, JournalErrorKind, JournalReport, RECORD_BYTES};

use self::faulty_disk::{Faults, FaultyDisk};

const CONFIG: JournalConfig = JournalConfig { fingerprint: *b"of the secret 16", salt: 7 };
const HEADER: usize = 64;

/// The last usage of every bucket.
type Usage = HashMap<u64, u64>;

fn at(n: u64, used: u64) -> QuotaBucket {
    let usage = QuotaUse::new(Time::from_secs(2_000_000_000), used, 3, Span::from_secs(86_400));
    QuotaBucket { bucket: Digest([n, !n]), usage, owner: 5 }
}

fn directory() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tollgate.quotas");
    (dir, path)
}

fn open_with(path: &Path, config: JournalConfig) -> Result<(Journal<FileDisk>, JournalReport, Usage), JournalError> {
    let mut usage = Usage::new();
    let keep = |records: &[QuotaBucket]| {
        for record in records {
            assert_eq!(*record, at(record.bucket.0[0], record.usage.used()), "every field is as written");
            usage.insert(record.bucket.0[0], record.usage.used());
        }
    };
    let (journal, report) = Journal::open(FileDisk::new(path.to_owned()), config, keep)?;
    Ok((journal, report, usage))
}

fn open(path: &Path) -> (Journal<FileDisk>, JournalReport, Usage) {
    open_with(path, CONFIG).unwrap()
}

fn faulty(path: &Path, faults: &Faults) -> Journal<FaultyDisk> {
    Journal::open(FaultyDisk::new(path, faults), CONFIG, |_| {}).unwrap().0
}

/// Writes usage 1 of buckets 0 to `count`.
fn written(path: &Path, count: u64) {
    let (mut journal, ..) = open(path);
    journal.append(&(0..count).map(|n| at(n, 1)).collect::<Vec<_>>()).unwrap();
    journal.sync().unwrap();
}

#[test]
fn the_last_record_of_a_bucket_counts() {
    let (_dir, path) = directory();
    let (mut journal, report, _) = open(&path);
    assert_eq!(report, JournalReport::default());
    assert!(!path.exists(), "a node without quotas writes no file");
    journal.append(&[at(1, 10), at(2, 20)]).unwrap();
    journal.append(&[at(1, 11)]).unwrap();
    journal.sync().unwrap();
    assert_eq!(journal.bytes(), fs::metadata(&path).unwrap().len());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    drop(journal);
    let (mut journal, report, usage) = open(&path);
    assert_eq!(report, JournalReport { records: 3, ..JournalReport::default() });
    assert_eq!(usage, Usage::from([(1, 11), (2, 20)]));
    journal.append(&[at(2, 21)]).unwrap();
    drop(journal);
    assert_eq!(open(&path).2, Usage::from([(1, 11), (2, 21)]));
}

#[test]
fn a_large_journal_is_read_in_batches() {
    let (_dir, path) = directory();
    written(&path, 10_000);
    let (_, report, usage) = open(&path);
    assert_eq!((report.records, usage.len()), (10_000, 10_000));
}

#[test]
fn a_torn_tail_is_cut_off_at_every_length() {
    let (_dir, path) = directory();
    written(&path, 3);
    let whole = fs::read(&path).unwrap();
    for len in HEADER..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        let (mut journal, report, usage) = open(&path);
        let left = (len - HEADER) / RECORD_BYTES;
        assert_eq!((report.records, report.damaged), (left as u64, 0), "of {len} bytes");
        assert_eq!(report.torn_bytes, ((len - HEADER) % RECORD_BYTES) as u64);
        assert_eq!(usage.len(), left);
        journal.append(&[at(9, 9)]).unwrap();
        drop(journal);
        let (_, report, usage) = open(&path);
        assert_eq!((report.torn_bytes, usage.len(), usage[&9]), (0, left + 1, 9), "appended after {len} bytes");
    }
}

#[test]
fn zeros_and_blocks_of_another_file_at_the_end_are_a_torn_tail() {
    let (_dir, path) = directory();
    written(&path, 3);
    let (_other, stale) = directory();
    let config = JournalConfig { salt: 8, ..CONFIG };
    open_with(&stale, config).unwrap().0.append(&[at(7, 7)]).unwrap();
    for tail in [vec![0; 4096], fs::read(&stale).unwrap()[HEADER..].to_vec()] {
        let mut whole = fs::read(&path).unwrap();
        whole.extend(&tail);
        fs::write(&path, whole).unwrap();
        let (_, report, usage) = open(&path);
        assert_eq!((report.torn_bytes, report.damaged, usage.len()), (tail.len() as u64, 0, 3));
    }
}

#[test]
fn an_emptied_journal_is_refused_and_left_as_it_is() {
    let (_dir, path) = directory();
    written(&path, 3);
    let whole = fs::read(&path).unwrap();
    for len in [0, 1, HEADER - 1] {
        fs::write(&path, &whole[..len]).unwrap();
        let (kind, text) = refused(&path, CONFIG);
        assert_eq!(kind, JournalErrorKind::Emptied);
        assert!(text.contains("was emptied: restore the file from a backup, or remove it"), "{text}");
        assert_eq!(fs::read(&path).unwrap().len(), len);
    }
}

#[test]
fn one_of_two_processes_creates_the_journal() {
    let (_dir, path) = directory();
    let (mut first, ..) = open(&path);
    let (mut second, ..) = open(&path);
    first.claim().unwrap();
    first.claim().unwrap();
    assert_eq!(second.claim().map_err(|error| error.kind), Err(JournalErrorKind::InUse));
    assert!(second.append(&[at(2, 2)]).is_err(), "and writes nothing into it");
    first.append(&[at(1, 1)]).unwrap();
    drop(first);
    assert_eq!(
        second.claim().map_err(|error| error.kind),
        Err(JournalErrorKind::InUse),
        "its state is not that of the file"
    );
    drop(second);
    assert_eq!(open(&path).2, Usage::from([(1, 1)]));
}

#[test]
fn a_flipped_bit_costs_one_record_and_the_file_is_rewritten() {
    let (_dir, path) = directory();
    written(&path, 5);
    let whole = fs::read(&path).unwrap();
    for bit in (0..RECORD_BYTES * 8).step_by(7) {
        let mut damaged = whole.clone();
        damaged[HEADER + 2 * RECORD_BYTES + bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &damaged).unwrap();
        let (journal, report, usage) = open(&path);
        assert_eq!(report, JournalReport { records: 4, damaged: 1, torn_bytes: 0 });
        assert!(!usage.contains_key(&2) && usage.len() == 4);
        assert!(journal.wants_rewrite(4));
    }
}

fn refused(path: &Path, config: JournalConfig) -> (JournalErrorKind, String) {
    let error = open_with(path, config).unwrap_err();
    let text = error.to_string();
    (error.kind, text)
}

#[test]
fn digests_of_another_secret_are_refused_and_nothing_is_changed() {
    let (_dir, path) = directory();
    written(&path, 3);
    let before = fs::read(&path).unwrap();
    let (kind, text) = refused(&path, JournalConfig { fingerprint: [9; 16], ..CONFIG });
    assert_eq!(kind, JournalErrorKind::OtherSecret);
    assert!(text.contains("another secret") && text.contains("secret_file"), "{text}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn other_files_and_damaged_headers_are_refused() {
    let (_dir, path) = directory();
    fs::write(&path, [b'x'; 200]).unwrap();
    assert_eq!(refused(&path, CONFIG).0, JournalErrorKind::NoJournal);
    fs::remove_file(&path).unwrap();
    written(&path, 1);
    let mut damaged = fs::read(&path).unwrap();
    damaged[20] ^= 1;
    fs::write(&path, damaged).unwrap();
    assert_eq!(refused(&path, CONFIG).0, JournalErrorKind::DamagedHeader);
}

#[test]
fn a_second_process_is_refused() {
    let (_dir, path) = directory();
    written(&path, 1);
    let (journal, ..) = open(&path);
    let (kind, text) = refused(&path, CONFIG);
    assert_eq!(kind, JournalErrorKind::InUse);
    assert!(text.contains("in use by another process"), "{text}");
    drop(journal);
    open(&path);
}

/// A rewrite in two steps, with changes before, between and after.
fn rewrite(journal: &mut Journal<impl tollgate_journal::JournalDisk>) {
    journal.begin_rewrite().unwrap();
    journal.copy(&[at(0, 100)]).unwrap();
    journal.append(&[at(0, 101), at(1, 200)]).unwrap();
    journal.copy(&[at(1, 200), at(2, 300)]).unwrap();
    journal.append(&[at(2, 301)]).unwrap();
    journal.finish_rewrite().unwrap();
}

#[test]
fn a_rewrite_keeps_the_latest_usage_and_halves_the_file() {
    let (_dir, path) = directory();
    let (mut journal, ..) = open(&path);
    for used in 0..1000 {
        journal.append(&(0..10).map(|n| at(n, used)).collect::<Vec<_>>()).unwrap();
    }
    assert!(journal.wants_rewrite(10) && !journal.wants_rewrite(6_000));
    rewrite(&mut journal);
    assert_eq!((journal.records(), journal.is_rewriting(), journal.wants_rewrite(3)), (6, false, false));
    assert!(refused(&path, CONFIG).0 == JournalErrorKind::InUse, "the new file is locked as the old one was");
    journal.append(&[at(1, 201)]).unwrap();
    drop(journal);
    let (_, report, usage) = open(&path);
    assert_eq!(report, JournalReport { records: 7, ..JournalReport::default() });
    assert_eq!(usage, Usage::from([(0, 101), (1, 201), (2, 301)]));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_rewrite_that_is_cut_short_leaves_the_journal_as_it_was() {
    let (_dir, path) = directory();
    written(&path, 3);
    let (mut journal, ..) = open(&path);
    journal.begin_rewrite().unwrap();
    journal.copy(&[at(0, 100)]).unwrap();
    journal.append(&[at(1, 200)]).unwrap();
    drop(journal); // killed
    let (mut journal, _, usage) = open(&path);
    assert_eq!(usage, Usage::from([(0, 1), (1, 200), (2, 1)]));
    rewrite(&mut journal);
    drop(journal);
    assert_eq!(open(&path).2, Usage::from([(0, 101), (1, 200), (2, 301)]));
}

#[test]
fn a_full_disk_tears_no_record_and_writing_resumes() {
    for room in 0..3 * RECORD_BYTES as u64 {
        let (_dir, path) = directory();
        let faults = Faults::default();
        let mut journal = faulty(&path, &faults);
        journal.append(&[at(1, 1)]).unwrap();
        faults.room.set(Some(room));
        assert!(journal.append(&[at(1, 2), at(2, 2), at(3, 2)]).is_err(), "{room}");
        assert!(journal.append(&[at(1, 2), at(2, 2), at(3, 2)]).is_err(), "{room}");
        faults.room.set(None);
        journal.append(&[at(4, 4)]).unwrap();
        journal.sync().unwrap();
        drop(journal);
        let (_, report, usage) = open(&path);
        assert_eq!(report, JournalReport { records: 2, ..JournalReport::default() }, "{room}");
        assert_eq!(usage, Usage::from([(1, 1), (4, 4)]));
    }
}

#[test]
fn a_disk_that_is_full_from_the_start_is_used_later() {
    let (_dir, path) = directory();
    let faults = Faults::default();
    let mut journal = faulty(&path, &faults);
    for room in [0, 10, 63] {
        faults.room.set(Some(room));
        assert!(journal.append(&[at(1, 1)]).is_err());
    }
    faults.room.set(None);
    journal.append(&[at(1, 1)]).unwrap();
    drop(journal);
    assert_eq!(open(&path).2, Usage::from([(1, 1)]));
}

#[test]
fn a_failed_sync_calls_for_a_rewrite() {
    let (_dir, path) = directory();
    let faults = Faults::default();
    let mut journal = faulty(&path, &faults);
    journal.append(&[at(1, 1)]).unwrap();
    faults.fails_to_sync.set(true);
    assert!(journal.sync().is_err() && journal.wants_rewrite(1));
    journal.begin_rewrite().unwrap();
    assert!(journal.copy(&[at(1, 1)]).is_err() && !journal.is_rewriting());
    faults.fails_to_sync.set(false);
    assert!(journal.sync().is_ok() && journal.wants_rewrite(1), "a later success says nothing about the first file");
    rewrite(&mut journal);
    assert!(!journal.wants_rewrite(3));
}

#[test]
fn a_rewrite_on_a_full_disk_is_given_up_and_releases_its_space() {
    let (dir, path) = directory();
    let faults = Faults::default();
    let mut journal = faulty(&path, &faults);
    journal.append(&[at(1, 1)]).unwrap();
    journal.begin_rewrite().unwrap();
    faults.room.set(Some(RECORD_BYTES as u64)); // for one of the two files
    journal.append(&[at(1, 2)]).unwrap();
    faults.room.set(None);
    assert!(!journal.is_rewriting() && journal.finish_rewrite().is_err());
    assert_eq!(fs::metadata(dir.path().join("tollgate.quotas.new")).unwrap().len(), 0);
    journal.append(&[at(1, 3)]).unwrap();
    drop(journal);
    assert_eq!(open(&path).2, Usage::from([(1, 3)]));
}

#[test]
fn a_replacement_that_may_not_be_durable_is_repeated() {
    let (_dir, path) = directory();
    let faults = Faults::default();
    let mut journal = faulty(&path, &faults);
    journal.append(&[at(1, 1)]).unwrap();
    faults.fails_to_sync_directory.set(true);
    journal.begin_rewrite().unwrap();
    assert!(journal.finish_rewrite().is_err() && journal.wants_rewrite(1));
    faults.fails_to_sync_directory.set(false);
    rewrite(&mut journal);
    assert!(!journal.wants_rewrite(3));
}

#[test]
fn appending_does_not_sync() {
    let (_dir, path) = directory();
    let faults = Faults::default();
    let mut journal = faulty(&path, &faults);
    journal.append(&[at(1, 1)]).unwrap();
    let before = faults.syncs.get();
    (0..10).for_each(|n| journal.append(&[at(n, 1)]).unwrap());
    assert_eq!(faults.syncs.get(), before);
    journal.sync().unwrap();
    assert_eq!(faults.syncs.get(), before + 1, "one for all");
}
