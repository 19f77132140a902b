//! Tests of what a store reports of its quotas, and of what it takes back.

use std::sync::Arc;

use tollgate_core::{
    Ask, Charge, Digest, FixedWindow, Limit, ManualClock, Owner, Quota, QuotaBucket, QuotaUse, Receipt, Span, Time,
};

use super::*;
use crate::{MemoryConfig, Outcomes};

const START: Time = Time::from_secs(1_000);
const END: Time = Time::from_secs(2_000);

fn quota(amount: u64) -> Limit {
    Limit::Quota(Quota::new(amount, START, END, Time::from_secs(3_000)).unwrap())
}

fn digest(n: u64) -> Digest {
    let spread = |x: u64| x.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    Digest([spread(n + 1), spread(spread(n + 7))])
}

fn tracked() -> (Memory, ManualClock) {
    let clock = ManualClock::at(START);
    let memory = Memory::with_clock(MemoryConfig { shards: 4, ..MemoryConfig::default() }, Arc::new(clock.clone()));
    memory.track_quotas();
    (memory, clock)
}

fn charge(n: u64, cost: u64) -> Charge {
    Charge { owner: Owner::new(7), ..Charge::new(digest(n), quota(10), cost) }
}

fn take(memory: &Memory, charges: &[Charge]) -> (bool, Outcomes) {
    let mut outcomes = Outcomes::new();
    (memory.take_now(charges, &mut outcomes).allowed, outcomes)
}

fn changed(memory: &Memory) -> Vec<QuotaBucket> {
    let mut found = Vec::new();
    let all = memory.write_changed_quotas(|buckets| {
        found.extend_from_slice(buckets);
        Ok::<(), ()>(())
    });
    assert_eq!(all, Ok(()));
    found
}

fn record(n: u64, used: u64) -> QuotaBucket {
    QuotaBucket { bucket: digest(n), usage: QuotaUse::new(END, used, 0, Span::ZERO), owner: 7 }
}

fn used(memory: &Memory, n: u64) -> u64 {
    let (_, outcomes) = take(memory, &[Charge { ask: Ask::Peek(1), ..charge(n, 0) }]);
    outcomes[0].used
}

#[test]
fn a_changed_bucket_is_reported_once_with_its_latest_usage() {
    let (memory, _) = tracked();
    assert!(take(&memory, &[charge(1, 2)]).0);
    assert!(take(&memory, &[charge(1, 3)]).0);
    assert_eq!(changed(&memory), [record(1, 5)]);
    assert_eq!(changed(&memory), []);
    assert!(take(&memory, &[charge(1, 1)]).0);
    assert_eq!(changed(&memory), [record(1, 6)]);
}

#[test]
fn looks_refusals_and_other_algorithms_report_nothing() {
    let (memory, _) = tracked();
    assert!(take(&memory, &[charge(1, 10)]).0);
    assert_eq!(changed(&memory), [record(1, 10)]);
    assert!(!take(&memory, &[charge(1, 1)]).0);
    assert_eq!(used(&memory, 1), 10);
    let per_minute = Charge::new(digest(2), Limit::per_minute(5).unwrap(), 1);
    assert!(take(&memory, &[per_minute]).0);
    assert!(!take(&memory, &[per_minute, charge(1, 1)]).0);
    assert_eq!(changed(&memory), []);
}

#[test]
fn several_charges_of_a_request_are_reported() {
    let (memory, _) = tracked();
    assert!(take(&memory, &[charge(1, 2), charge(2, 3), charge(3, 4)]).0);
    assert!(take(&memory, &[charge(1, 2), charge(2, 3), charge(3, 4)]).0);
    let mut reported = changed(&memory);
    reported.sort_by_key(|record| record.usage.used());
    assert_eq!(reported, [record(1, 4), record(2, 6), record(3, 8)]);
}

#[test]
fn a_refund_of_all_is_reported_before_the_bucket_is_dropped() {
    let (memory, _) = tracked();
    let (_, outcomes) = take(&memory, &[charge(1, 4)]);
    let receipt = Receipt::of(&charge(1, 4), &outcomes[0]);
    assert_eq!(changed(&memory), [record(1, 4)]);
    assert_eq!(memory.give_back_now(&[receipt]), 1);
    (0..100).for_each(|_| memory.sweep());
    assert_eq!(changed(&memory), [record(1, 0)]);
    (0..100).for_each(|_| memory.sweep());
    assert_eq!(memory.quota_buckets(), 0);
}

#[test]
fn a_forgotten_bucket_is_reported_as_unused() {
    let (memory, _) = tracked();
    take(&memory, &[charge(1, 4)]);
    assert_eq!(changed(&memory), [record(1, 4)]);
    memory.forget_now(&[charge(1, 0)]);
    assert_eq!(used(&memory, 1), 0);
    let unused = QuotaBucket { usage: QuotaUse::default(), ..record(1, 0) };
    assert_eq!(changed(&memory), [unused]);
    (0..100).for_each(|_| memory.sweep());
    assert_eq!(memory.quota_buckets(), 0);
}

#[test]
fn what_could_not_be_written_is_reported_again() {
    let (memory, _) = tracked();
    (0..100).for_each(|n| assert!(take(&memory, &[charge(n, 1)]).0));
    let mut calls = 0;
    let failed = memory.write_changed_quotas(|_| {
        calls += 1;
        if calls == 2 { Err("disk full") } else { Ok(()) }
    });
    assert_eq!((failed, calls), (Err("disk full"), 2));
    let again = changed(&memory).len();
    assert!(again > 40 && again < 100, "{again} of the 100: all but those of the first shard");
}

#[test]
fn an_unwritten_refund_is_reported_although_its_bucket_is_gone() {
    let (memory, _) = tracked();
    take(&memory, &[charge(1, 4)]);
    changed(&memory);
    memory.forget_now(&[charge(1, 0)]);
    let failed = memory.write_changed_quotas(|_| {
        (0..100).for_each(|_| memory.sweep());
        assert_eq!(memory.quota_buckets(), 0);
        Err("disk full")
    });
    assert_eq!(failed, Err("disk full"));
    assert_eq!(changed(&memory), [QuotaBucket { usage: QuotaUse::default(), ..record(1, 0) }]);
}

#[test]
fn changes_are_kept_while_the_table_grows_and_shrinks() {
    let (memory, clock) = tracked();
    (0..500).for_each(|n| assert!(take(&memory, &[charge(n, 1)]).0));
    changed(&memory);
    (0..500).step_by(5).for_each(|n| assert!(take(&memory, &[charge(n, 1)]).0));
    (500..5_000).for_each(|n| assert!(take(&memory, &[charge(n, 2)]).0));
    let mut reported: Vec<_> = changed(&memory).iter().map(|record| record.bucket.0).collect();
    let mut expected: Vec<_> = (0..500).step_by(5).chain(500..5_000).map(|n| digest(n).0).collect();
    reported.sort_unstable();
    expected.sort_unstable();
    assert_eq!(reported, expected);
    clock.advance(Span::from_secs(2_000));
    (0..1_000).for_each(|_| memory.sweep());
    assert_eq!((memory.quota_buckets(), changed(&memory).len()), (0, 0));
}

#[test]
fn a_store_that_does_not_track_reports_nothing() {
    let memory = Memory::with_clock(MemoryConfig::default(), Arc::new(ManualClock::at(START)));
    assert!(take(&memory, &[charge(1, 1)]).0);
    assert_eq!(changed(&memory), []);
}

#[test]
fn restored_usage_is_charged_on() {
    let (memory, _) = tracked();
    let unused = QuotaBucket { usage: QuotaUse::default(), ..record(3, 0) };
    let over = QuotaBucket { usage: QuotaUse::new(START, 9, 0, Span::ZERO), ..record(4, 0) };
    let restored = memory.restore_quotas(&[record(1, 3), record(2, 2), record(1, 8), record(3, 5), unused, over]);
    assert_eq!(restored, RestoredQuotas { restored: 4, over: 2, full: 0 });
    assert_eq!([1, 2, 3, 4].map(|n| used(&memory, n)), [8, 2, 0, 0]);
    assert_eq!(changed(&memory), [], "the journal has these already");
    assert!(take(&memory, &[charge(1, 2)]).0);
    assert!(!take(&memory, &[charge(1, 1)]).0);
    let mut copy = Vec::new();
    (0..memory.shards()).for_each(|shard| memory.copy_quotas(shard, &mut copy));
    copy.sort_by_key(|record| record.usage.used());
    assert_eq!(copy, [record(2, 2), record(1, 10)]);
}

#[test]
fn restoring_stays_within_the_budget_and_counts_what_does_not_fit() {
    let clock = Arc::new(ManualClock::at(START));
    let memory = Memory::with_clock(MemoryConfig { max_memory: 64 << 10, shards: 4, ..MemoryConfig::default() }, clock);
    let records: Vec<_> = (0..10_000).map(|n| record(n, 1)).collect();
    let RestoredQuotas { restored, full, .. } = memory.restore_quotas(&records);
    assert!(full > 0 && restored + full == 10_000, "{restored} and {full}");
    assert!(memory.stats().bytes <= 64 << 10, "{}", memory.stats().bytes);
}

#[test]
fn a_span_kept_for_rollover_survives_being_written_down() {
    for secs in [0, 1, 86_400, 31 * 86_400, 366 * 86_400] {
        let limit = Quota::new(10, START, START.after(Span::from_secs(secs + 1)), Time::from_secs(1 << 33)).unwrap();
        let keep = limit.with_rollover(5).keep();
        let usage = QuotaUse::new(END, 1, 2, keep);
        let QuotaBucket { usage, .. } = QuotaBucket { usage, ..record(1, 0) };
        assert_eq!(QuotaUse::new(usage.end(), usage.used(), usage.carried(), usage.keep()), usage);
    }
}

/// A calendar's day ends when the wall clock says so; rates go on, because time has not passed.
#[test]
fn periods_follow_the_wall_clock_and_windows_do_not() {
    let (memory, clock) = tracked();
    let window = Limit::FixedWindow(FixedWindow::new(10, Span::from_secs(1_000)).unwrap());
    let rate = Charge { bucket: digest(2), limit: window, ..charge(2, 4) };
    let used = |memory: &Memory| {
        let look = |charge: Charge| Charge { ask: Ask::Peek(0), ..charge };
        let (_, outcomes) = take(memory, &[look(charge(1, 0)), look(rate)]);
        (outcomes[0].used, outcomes[1].used, outcomes[0].reset_after)
    };
    assert!(take(&memory, &[charge(1, 7), rate]).0);
    clock.set_wall(END.before(Span::SECOND));
    assert_eq!(used(&memory), (7, 4, Span::SECOND));
    clock.set_wall(END);
    assert_eq!(used(&memory), (0, 4, Span::from_secs(1_000)), "the next period, of the same length");
    assert!(take(&memory, &[charge(1, 3)]).0, "a single charge, too");
    clock.set_wall(START);
    assert_eq!(used(&memory), (3, 4, Span::from_secs(1_000)), "a step back keeps what the running period has");
    (0..100).for_each(|_| memory.sweep());
    assert_eq!(memory.quota_buckets(), 1);
}

/// The store remembers receipts for a time, and a step of the wall clock is no time.
#[test]
fn a_receipt_of_a_quota_is_honoured_once_whatever_the_wall_clock_does() {
    for wall in [START.before(Span::from_secs(900)), END.before(Span::SECOND)] {
        let (memory, clock) = tracked();
        let charged = charge(1, 7);
        let (_, outcomes) = take(&memory, &[charged]);
        let receipt = || Receipt { number: Some(5), ..Receipt::of(&charged, &outcomes[0]) };
        clock.set_wall(wall);
        assert_eq!(memory.give_back_now(&[receipt()]), 1);
        assert!(take(&memory, &[charged]).0);
        assert_eq!(memory.give_back_now(&[receipt()]), 0, "spent");
        assert_eq!(used(&memory, 1), 7);
    }
}
