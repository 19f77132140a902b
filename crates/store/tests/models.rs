//! The store under a model checker: random and adversarial schedules of every lock it takes.
//!
//! Runs only with `--cfg shuttle`, which puts the checker's lock in place of the real one: see `script/test`.
#![cfg(shuttle)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::thread;
use tollgate_core::{
    Ask, Charge, Concurrency, Digest, FixedWindow, Limit, ManualClock, Owner, Receipt, SlotId, Span, Time,
};
use tollgate_store::{Memory, MemoryConfig, Outcomes};

const SCHEDULES: usize = 5_000;

/// Checks `model` under random schedules, and under those that a bug of three forced switches would need.
fn check(model: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(model.clone(), SCHEDULES);
    shuttle::check_pct(model, SCHEDULES, 3);
}

fn memory(config: MemoryConfig) -> Arc<Memory> {
    Arc::new(Memory::with_clock(config, Arc::new(ManualClock::at(Time::from_secs(1_000)))))
}

fn small() -> Arc<Memory> {
    memory(MemoryConfig { shards: 4, ..MemoryConfig::default() })
}

/// Buckets 0, 1, 2 … fall into different shards.
fn bucket(number: u64) -> Digest {
    Digest([number << 62, number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1])
}

fn window(limit: u64) -> Limit {
    Limit::FixedWindow(FixedWindow::new(limit, Span::from_secs(60)).unwrap())
}

fn used(memory: &Memory, bucket: Digest, limit: Limit) -> u64 {
    let mut outcomes = Outcomes::new();
    let peek = Charge { ask: Ask::Peek(1), ..Charge::new(bucket, limit, 0) };
    let _ = memory.take_now(&[peek], &mut outcomes);
    outcomes[0].used
}

/// Three requests over three buckets, named in three different orders: a lock taken out of order would deadlock.
#[test]
fn requests_over_several_buckets_neither_deadlock_nor_split() {
    check(|| {
        let memory = small();
        let admitted = Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = [[0, 1, 2], [2, 0, 1], [1, 2, 0]]
            .into_iter()
            .map(|order| {
                let (memory, admitted) = (memory.clone(), admitted.clone());
                thread::spawn(move || {
                    let charges = order.map(|number| Charge::new(bucket(number), window(2), 1));
                    let taken = memory.take_now(&charges, &mut Outcomes::new());
                    admitted.fetch_add(u64::from(taken.allowed), Ordering::Relaxed);
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(admitted.load(Ordering::Relaxed), 2);
        assert!((0..3).all(|number| used(&memory, bucket(number), window(2)) == 2));
    });
}

/// A request that one bucket refuses leaves no trace in the others, whatever runs beside it.
#[test]
fn a_refused_request_leaves_no_trace() {
    check(|| {
        let memory = small();
        let full = Charge::new(bucket(1), window(0), 1);
        let shared = Charge::new(bucket(0), window(10), 1);
        let ask = |charges: Vec<Charge>| {
            let memory = memory.clone();
            thread::spawn(move || memory.take_now(&charges, &mut Outcomes::new()).allowed)
        };
        let (refused, passes) = (ask(vec![shared, full]), ask(vec![shared]));
        assert_eq!((refused.join().unwrap(), passes.join().unwrap()), (false, true));
        assert_eq!(used(&memory, bucket(0), window(10)), 1);
    });
}

#[test]
fn a_receipt_is_honoured_once() {
    check(|| {
        let memory = small();
        let mut outcomes = Outcomes::new();
        let _ = memory.take_now(&[Charge::new(bucket(0), window(10), 4)], &mut outcomes);
        let stamp = outcomes[0].stamp;
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let memory = memory.clone();
                let receipt = Receipt {
                    bucket: bucket(0),
                    limit: window(10),
                    units: 2,
                    stamp,
                    slot: None,
                    number: Some(7),
                    owner: Owner::new(0),
                    identity: 0,
                };
                thread::spawn(move || memory.give_back_now(&[receipt]))
            })
            .collect();
        let honoured: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!((honoured, used(&memory, bucket(0), window(10))), (1, 2));
    });
}

#[test]
fn never_more_holders_than_slots() {
    check(|| {
        let memory = small();
        let limit = Limit::Concurrency(Concurrency::new(2, Span::from_secs(10)).unwrap());
        let in_flight = Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let (memory, in_flight) = (memory.clone(), in_flight.clone());
                thread::spawn(move || {
                    let id = SlotId(number);
                    let hold = Charge { ask: Ask::Hold(id), ..Charge::new(bucket(0), limit, 0) };
                    if memory.take_now(&[hold], &mut Outcomes::new()).allowed {
                        assert!(in_flight.fetch_add(1, Ordering::Relaxed) < 2);
                        thread::yield_now();
                        in_flight.fetch_sub(1, Ordering::Relaxed);
                        let receipt = Receipt {
                            bucket: bucket(0),
                            limit,
                            units: 1,
                            stamp: Time::ZERO,
                            slot: Some(id),
                            number: None,
                            owner: Owner::new(0),
                            identity: 0,
                        };
                        assert_eq!(memory.give_back_now(&[receipt]), 1);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(used(&memory, bucket(0), limit), 0);
    });
}

/// New keys race for the last room: whoever finds none shares the overflow bucket, and nobody is lost on the way.
#[test]
fn a_full_store_overflows_without_losing_a_charge() {
    check(|| {
        let memory = memory(MemoryConfig { max_memory: 0, shards: 1, overflow_factor: 3 });
        let limit = window(1);
        let fill = |number: u64| Charge {
            owner: Owner::new(9),
            ..Charge::new(Digest([number << 40, number << 55 | 1]), limit, 1)
        };
        let mut filled = 0;
        while memory.stats().overflowed == 0 {
            filled += 1;
            let _ = memory.take_now(&[fill(filled)], &mut Outcomes::new());
        }
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let memory = memory.clone();
                let charges = [fill(filled + 1 + number), Charge::new(bucket(number), window(0), 0)];
                thread::spawn(move || memory.take_now(&charges, &mut Outcomes::new()).allowed)
            })
            .collect();
        let admitted = threads.into_iter().map(|thread| thread.join().unwrap()).filter(|allowed| *allowed).count();
        assert_eq!(admitted, 2, "one of three was used while filling up");
    });
}
