//! The stores under a model checker: random and adversarial schedules of every lock.
//!
//! Runs only with `--cfg shuttle`, which replaces the lock by the checker's: see `script/test`.
#![cfg(shuttle)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use shuttle::thread;
use tollgate_core::{
    Ask, Charge, Concurrency, Digest, FixedWindow, LeaseSize, Limit, ManualClock, Owner, Receipt, Sharing, SlotId,
    Span, Time,
};
use tollgate_store::{Fleet, FleetConfig, Memory, MemoryConfig, Outcomes, Store, StoreError, StoreErrorKind, Taken};

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

/// A request that one bucket refuses leaves no trace in the others, whatever runs concurrently.
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

/// New keys race for the last room: those that find none share the overflow bucket, and no charge is lost.
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

/// The shared store of several nodes. Other threads run before and after each answer; some answers are lost.
struct Shared {
    memory: Arc<Memory>,
    calls: AtomicU64,
    loses_every: u64,
}

impl Store for Shared {
    async fn take(&self, charges: &[Charge], _: Span, outcomes: &mut Outcomes) -> Result<Taken, StoreError> {
        thread::yield_now();
        let taken = self.memory.take_now(charges, outcomes);
        thread::yield_now();
        let number = 1 + self.calls.fetch_add(1, Ordering::Relaxed);
        match self.loses_every > 0 && number.is_multiple_of(self.loses_every) {
            true => Err(StoreError { kind: StoreErrorKind::Indeterminate, detail: "lost".to_owned() }),
            false => Ok(taken),
        }
    }

    async fn give_back(&self, receipts: &[Receipt]) -> Result<usize, StoreError> {
        thread::yield_now();
        Ok(self.memory.give_back_now(receipts))
    }

    async fn forget(&self, buckets: &[Charge]) -> Result<(), StoreError> {
        self.memory.forget_now(buckets);
        Ok(())
    }
}

/// A node on `clock`, over `memory`.
fn node(memory: &Arc<Memory>, clock: &ManualClock, loses_every: u64) -> Arc<Fleet<Shared>> {
    let shared = Shared { memory: memory.clone(), calls: AtomicU64::new(0), loses_every };
    let config = FleetConfig {
        local: MemoryConfig { shards: 1, ..MemoryConfig::default() },
        lease_ttl: Span::from_millis(400),
        ..FleetConfig::default()
    };
    Arc::new(Fleet::new(shared, config, Arc::new(clock.clone())))
}

/// The answer of a store that never waits.
fn answer<T>(future: impl Future<Output = T>) -> T {
    match std::pin::pin!(future).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("it waits"),
    }
}

fn leased(number: u64, limit: u64) -> Charge {
    Charge { sharing: Sharing::Leased(LeaseSize::Auto), ..Charge::new(bucket(number), window(limit), 1) }
}

fn admits(node: &Fleet<Shared>, charges: &[Charge]) -> u64 {
    let taken = answer(node.take(charges, Span::SECOND, &mut Outcomes::new()));
    u64::from(taken.is_ok_and(|taken| taken.allowed))
}

/// Makes the bucket hot, so that a lease of some units is held.
fn warm(node: &Fleet<Shared>, clock: &ManualClock, charge: Charge) -> u64 {
    let mut admitted = 0;
    while node.stats().lease_held < 3 {
        clock.advance(Span::from_millis(10));
        admitted += admits(node, &[charge]);
    }
    admitted
}

/// A lease is spent, refilled, expires and is given back concurrently on two nodes: no unit is spent twice, and every
/// unit is accounted for.
#[test]
fn leased_units_are_spent_once() {
    check(|| {
        let clock = ManualClock::at(Time::from_secs(36_000));
        let memory = Arc::new(Memory::with_clock(
            MemoryConfig { shards: 2, ..MemoryConfig::default() },
            Arc::new(clock.clone()),
        ));
        let nodes = [node(&memory, &clock, 0), node(&memory, &clock, 0)];
        let charge = leased(0, 30);
        let admitted = Arc::new(AtomicU64::new(nodes.iter().map(|node| warm(node, &clock, charge)).sum()));
        let spend = |node: &Arc<Fleet<Shared>>| {
            let (node, admitted, clock) = (node.clone(), admitted.clone(), clock.clone());
            thread::spawn(move || {
                for _ in 0..3 {
                    clock.advance(Span::from_millis(1));
                    admitted.fetch_add(admits(&node, &[charge]), Ordering::Relaxed);
                }
            })
        };
        let keeper = {
            let (node, clock) = (nodes[0].clone(), clock.clone());
            thread::spawn(move || {
                clock.advance(Span::from_millis(390)); // some of it expires
                answer(node.upkeep());
            })
        };
        let threads = [spend(&nodes[0]), spend(&nodes[0]), spend(&nodes[1])];
        threads.into_iter().chain([keeper]).for_each(|thread| thread.join().unwrap());
        nodes.iter().for_each(|node| answer(node.close()));
        let admitted = admitted.load(Ordering::Relaxed);
        let stranded: u64 = nodes.iter().map(|node| node.stats().lease_stranded).sum();
        assert_eq!(used(&memory, bucket(0), window(30)), admitted + stranded);
        assert!(admitted <= 30);
        for stats in nodes.iter().map(|node| node.stats()) {
            let out = stats.lease_spent + stats.lease_returned + stats.lease_stranded;
            assert_eq!((stats.lease_held, stats.lease_granted), (0, out), "{stats:?}");
        }
    });
}

/// Answers are lost: their units are never spent, and the requests that waited for them do not block others.
#[test]
fn units_of_lost_answers_are_never_spent() {
    check(|| {
        let clock = ManualClock::at(Time::from_secs(36_000));
        let memory = Arc::new(Memory::with_clock(
            MemoryConfig { shards: 2, ..MemoryConfig::default() },
            Arc::new(clock.clone()),
        ));
        let node = node(&memory, &clock, 5);
        let charge = leased(0, 1_000);
        let admitted = Arc::new(AtomicU64::new(warm(&node, &clock, charge)));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (node, admitted, clock) = (node.clone(), admitted.clone(), clock.clone());
                thread::spawn(move || {
                    for _ in 0..4 {
                        clock.advance(Span::from_millis(1));
                        admitted.fetch_add(admits(&node, &[charge]), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let admitted = admitted.load(Ordering::Relaxed);
        assert!(used(&memory, bucket(0), window(1_000)) >= admitted + node.stats().lease_held);
        clock.advance(Span::from_millis(200));
        assert!((0..3).map(|_| admits(&node, &[charge])).sum::<u64>() >= 2, "the next requests ask again");
    });
}

/// Requests over two leases in opposite orders, one of them refused by the store: no deadlock, and provisional charges
/// are undone.
#[test]
fn a_refused_request_leaves_leases_whole() {
    check(|| {
        let clock = ManualClock::at(Time::from_secs(36_000));
        let memory = Arc::new(Memory::with_clock(
            MemoryConfig { shards: 2, ..MemoryConfig::default() },
            Arc::new(clock.clone()),
        ));
        let node = node(&memory, &clock, 0);
        let (a, b) = (leased(0, 1_000), leased(2, 1_000));
        let shut = Charge::new(bucket(1), window(0), 1);
        let mut admitted = [warm(&node, &clock, a), 0];
        admitted[1] += (0..4).map(|_| admits(&node, &[b])).sum::<u64>();
        let spawn = |charges: Vec<Charge>| {
            let node = node.clone();
            thread::spawn(move || (0..2).map(|_| admits(&node, &charges)).sum::<u64>())
        };
        let refused = [spawn(vec![a, shut, b]), spawn(vec![b, a, shut])];
        let passes = [spawn(vec![a, b]), spawn(vec![b])];
        assert_eq!(refused.map(|thread| thread.join().unwrap()), [0, 0]);
        let [both, second] = passes.map(|thread| thread.join().unwrap());
        answer(node.close());
        assert_eq!((both, second), (2, 2));
        assert_eq!(used(&memory, bucket(0), window(1_000)), admitted[0] + 2);
        assert_eq!(used(&memory, bucket(2), window(1_000)), admitted[1] + 4);
    });
}
