//! The in-memory store: the suite that every store passes, its bound on memory, and many threads at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tollgate_core::{
    Ask, Charge, Clock, Concurrency, Digest, FixedWindow, Gcra, Limit, ManualClock, Outcome, Owner, Receipt,
    SlidingLog, SlotId, Source, Span, Time,
};
use tollgate_store::{Memory, MemoryConfig, MonotonicClock, Outcomes};
use tollgate_testkit::suite::{self, Fixture};

struct InMemory {
    store: Memory,
    clock: ManualClock,
}

impl InMemory {
    fn new(config: MemoryConfig) -> InMemory {
        let clock = ManualClock::at(Time::from_secs(1_700_000_000));
        InMemory { store: Memory::with_clock(config, Arc::new(clock.clone())), clock }
    }
}

impl Fixture for InMemory {
    type Store = Memory;

    fn store(&self) -> &Memory {
        &self.store
    }

    fn set_time(&self, now: Time) {
        self.clock.set(now);
    }
}

#[tokio::test]
async fn memory_passes_the_suite() {
    suite::run(async || InMemory::new(MemoryConfig::default())).await;
}

#[tokio::test]
async fn memory_passes_the_suite_with_a_single_shard() {
    suite::run(async || InMemory::new(MemoryConfig { shards: 1, ..MemoryConfig::default() })).await;
}

fn digest(number: u64) -> Digest {
    let mut hasher = tollgate_core::KeyHasher::new(tollgate_core::Secret::new([7; 16]));
    hasher.word(number);
    hasher.finish()
}

fn window(limit: u64) -> Limit {
    Limit::FixedWindow(FixedWindow::new(limit, Span::from_secs(3600)).expect("a valid limit"))
}

/// P23: a flood of keys neither grows memory nor changes buckets that were there before.
#[test]
fn p23_a_flood_of_keys_is_bounded_and_harms_no_other_key() {
    for limit in
        [window(5), Limit::per_minute(5).unwrap(), Limit::SlidingLog(SlidingLog::new(50, Span::from_secs(60)).unwrap())]
    {
        let bound = 2 << 20;
        let memory = InMemory::new(MemoryConfig { max_memory: bound, ..MemoryConfig::default() });
        let mut outcomes = Outcomes::new();
        let cost = limit.capacity();
        for victim in 0..100 {
            assert!(memory.store.take_now(&[Charge::new(digest(victim), limit, cost)], &mut outcomes).allowed);
        }
        for stranger in 1_000..301_000 {
            let _ = memory.store.take_now(&[Charge::new(digest(stranger), limit, 1)], &mut outcomes);
        }
        let stats = memory.store.stats();
        assert!(stats.overflowed > 100_000 && stats.dropped == 0, "{limit:?}: {stats:?}");
        assert!(stats.bytes <= bound + bound / 10, "{limit:?}: {stats:?}");
        for victim in 0..100 {
            let taken = memory.store.take_now(&[Charge::new(digest(victim), limit, 1)], &mut outcomes);
            assert!(!taken.allowed && !is_overflow(&outcomes[0]), "{limit:?}: victim {victim} was reset");
        }
    }
}

/// Memory of buckets that equal fresh ones is given to new keys.
#[test]
fn p23_room_comes_back_with_time() {
    let memory = InMemory::new(MemoryConfig { max_memory: 1 << 20, ..MemoryConfig::default() });
    let mut outcomes = Outcomes::new();
    let limit = Limit::per_minute(5).unwrap();
    for number in 0..100_000 {
        let _ = memory.store.take_now(&[Charge::new(digest(number), limit, 1)], &mut outcomes);
    }
    let full = memory.store.stats();
    assert!(full.overflowed > 0);
    memory.clock.advance(Span::from_secs(62)); // a minute, and the second that late readers of the clock are given
    for _ in 0..200 {
        memory.store.sweep();
    }
    let swept = memory.store.stats();
    assert_eq!((swept.buckets, swept.dropped), (0, full.buckets as u64));
    let _ = memory.store.take_now(&[Charge::new(digest(1), limit, 1)], &mut outcomes);
    assert!(!is_overflow(&outcomes[0]));
}

/// One owner's flood overflows that owner only.
#[test]
fn p23_an_owner_with_a_share_overflows_alone() {
    let memory = InMemory::new(MemoryConfig { max_memory: 4 << 20, ..MemoryConfig::default() });
    let mut outcomes = Outcomes::new();
    let charge = |owner: Owner, number| Charge { owner, ..Charge::new(digest(number), window(5), 1) };
    let noisy = Owner { share: 10, ..Owner::new(1) };
    for number in 0..100_000 {
        let _ = memory.store.take_now(&[charge(noisy, number)], &mut outcomes);
    }
    assert!(is_overflow(&outcomes[0]));
    assert!(memory.store.stats().bytes < 1 << 20, "{:?}", memory.store.stats());
    for number in 200_000..210_000 {
        let _ = memory.store.take_now(&[charge(Owner::new(2), number)], &mut outcomes);
        assert!(!is_overflow(&outcomes[0]));
    }
}

/// Threads hammer few keys; the number of admissions must equal what the buckets hold, to the unit.
#[test]
fn p8_many_threads_admit_exactly_the_limit() {
    const KEYS: u64 = 3;
    const LIMIT: u64 = 5_000;
    let memory = Arc::new(Memory::new(MemoryConfig { shards: 8, ..MemoryConfig::default() }));
    let admitted: Arc<[AtomicU64; KEYS as usize]> = Arc::default();
    let day = |limit| Limit::FixedWindow(FixedWindow::new(limit, Span::from_secs(366 * 86_400)).unwrap());
    let (shared, key_limit) = (day(2 * LIMIT), day(LIMIT));
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let (memory, admitted) = (memory.clone(), admitted.clone());
            thread::spawn(move || {
                let mut outcomes = Outcomes::new();
                for round in 0..10_000 {
                    let key = (round + thread) % KEYS;
                    let mut charges = [Charge::new(digest(key), key_limit, 1), Charge::new(digest(99), shared, 1)];
                    if round % 2 == 0 {
                        charges.reverse();
                    }
                    if memory.take_now(&charges, &mut outcomes).allowed {
                        admitted[key as usize].fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let used = |bucket, limit| {
        let mut outcomes = Outcomes::new();
        let _ = memory.take_now(&[Charge { ask: Ask::Peek(1), ..Charge::new(bucket, limit, 0) }], &mut outcomes);
        outcomes[0].used
    };
    let told: Vec<u64> = admitted.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    let kept: Vec<u64> = (0..KEYS).map(|key| used(digest(key), key_limit)).collect();
    assert_eq!(told, kept);
    assert_eq!(told.iter().sum::<u64>(), 2 * LIMIT, "the shared limit was used up exactly");
    assert_eq!(used(digest(99), shared), 2 * LIMIT);
}

/// P3 on the real clock and two threads: never more than the burst and what time has given back.
#[test]
fn p3_many_threads_on_the_real_clock_stay_within_the_rate() {
    let clock = MonotonicClock::new();
    let memory = Arc::new(Memory::with_clock(MemoryConfig::default(), Arc::new(clock)));
    let gcra = Gcra::new(1_000_000, Span::SECOND, 100).unwrap();
    let start = clock.now();
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let memory = memory.clone();
            thread::spawn(move || {
                let mut outcomes = Outcomes::new();
                let charge = Charge::new(digest(1), Limit::Gcra(gcra), 1);
                (0..100_000).filter(|_| memory.take_now(&[charge], &mut outcomes).allowed).count() as u64
            })
        })
        .collect();
    let admitted: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    let bound = 100 + clock.now().since(start).nanos() / gcra.interval().nanos();
    assert!(admitted <= bound, "{admitted} admitted, at most {bound} may be");
    assert!(admitted >= 100);
}

fn small(max_memory: usize, shards: usize) -> InMemory {
    InMemory::new(MemoryConfig { max_memory, shards, overflow_factor: 10 })
}

fn take(memory: &InMemory, charge: Charge) -> bool {
    memory.store.take_now(&[charge], &mut Outcomes::new()).allowed
}

/// Two hundred rules overflow in one shard: their buckets find places, and do not make the table grow for ever.
#[test]
fn p23_many_overflow_buckets_share_a_shard() {
    let memory = small(64 << 10, 1);
    let limit = Limit::Gcra(Gcra::new(1, Span::from_secs(3600), 1).unwrap());
    let mut number = 0;
    for rule in 0..200 {
        let before = memory.store.stats().overflowed;
        while memory.store.stats().overflowed == before {
            take(&memory, Charge { owner: Owner::new(rule), ..Charge::new(digest(number), limit, 1) });
            number += 1;
        }
    }
    assert!(memory.store.stats().bytes <= 96 << 10, "{:?}", memory.store.stats());
}

#[test]
fn p23_slots_and_logs_are_bounded_too() {
    let slots = small(1 << 20, 1);
    let limit = Limit::Concurrency(Concurrency::new(1_000_000, Span::from_secs(3600)).unwrap());
    for number in 0..100_000 {
        take(&slots, Charge { ask: Ask::Hold(SlotId(number)), ..Charge::new(digest(1), limit, 0) });
    }
    assert!(slots.store.stats().bytes <= 3 << 20, "one doubling past the cap: {:?}", slots.store.stats());

    let logs = small(8 << 20, 1);
    let limit = Limit::SlidingLog(SlidingLog::new(10_000, Span::from_secs(3600)).unwrap());
    for round in 0..300_000 {
        logs.clock.advance(Span::from_nanos(1));
        take(
            &logs,
            Charge { owner: Owner { share: 10, ..Owner::new(1) }, ..Charge::new(digest(round % 100), limit, 1) },
        );
    }
    for number in 1_000..2_000 {
        take(&logs, Charge { owner: Owner::new(2), ..Charge::new(digest(number), window(5), 1) });
    }
    assert_eq!(logs.store.stats().overflowed, 0, "a share of 10 % leaves room for others: {:?}", logs.store.stats());
}

/// A client that holds one slot at a time is back in a moment: its bucket is not made anew for each of its requests.
#[test]
fn released_slots_leave_their_buckets_for_a_moment() {
    let memory = small(1 << 30, 1);
    let limit = Limit::Concurrency(Concurrency::new(1, Span::from_secs(60)).expect("a valid limit"));
    let hold_and_release = |number: u64| {
        let charge = Charge { ask: Ask::Hold(SlotId(number.into())), ..Charge::new(digest(number), limit, 1) };
        let mut outcomes = Outcomes::new();
        assert!(memory.store.take_now(&[charge], &mut outcomes).allowed);
        let receipts: Vec<Receipt> = outcomes.iter().map(|outcome| Receipt::of(&charge, outcome)).collect();
        assert_eq!(memory.store.give_back_now(&receipts), 1);
    };
    (0..1000).for_each(hold_and_release);
    assert_eq!((memory.store.stats().buckets, memory.store.stats().dropped), (1000, 0));
    memory.clock.advance(Span::from_secs(6));
    (1000..2000).for_each(hold_and_release);
    assert_eq!((memory.store.stats().buckets, memory.store.stats().dropped), (1000, 1000));
}

#[test]
fn p23_many_shards_do_not_lift_the_cap() {
    let memory = small(1 << 20, 65_536);
    for number in 0..200_000 {
        take(&memory, Charge::new(digest(number), window(1), 1));
    }
    assert!(memory.store.stats().bytes <= 5 << 18, "{:?}", memory.store.stats());
}

/// A flood of one algorithm is over: its memory serves the others.
#[test]
fn p23_memory_goes_to_the_algorithm_that_needs_it_now() {
    let memory = small(1 << 20, 4);
    for number in 0..60_000 {
        take(&memory, Charge::new(digest(number), Limit::per_minute(10).unwrap(), 1));
    }
    memory.clock.advance(Span::from_secs(86_400));
    let before = memory.store.stats().overflowed;
    for number in 0..5_000 {
        take(&memory, Charge::new(digest(number), window(10), 1));
    }
    assert_eq!(memory.store.stats().overflowed, before, "{:?}", memory.store.stats());
}

#[test]
fn many_new_buckets_in_one_call_find_room_in_an_empty_store() {
    for (shards, count) in [(1, 16), (1, 40), (256, 1_000)] {
        let memory = small(1 << 30, shards);
        let mut outcomes = Outcomes::new();
        for round in 0..6 {
            let numbers = round * count..(round + 1) * count;
            let charges: Vec<Charge> =
                numbers.map(|n| Charge::new(digest(n), Limit::per_minute(10).unwrap(), 1)).collect();
            assert!(memory.store.take_now(&charges, &mut outcomes).allowed);
            assert!(!outcomes.iter().any(is_overflow), "{shards} shards, {count} at once, round {round}");
        }
    }
}

#[test]
fn charges_that_come_to_share_an_overflow_bucket_add_up() {
    let memory = small(4096, 1);
    let mut number = 0;
    while memory.store.stats().overflowed == 0 {
        take(&memory, Charge::new(digest(number), window(1), 1));
        number += 1;
    }
    let charges = |count: u64| (1_000..1_000 + count).map(|n| Charge::new(digest(n), window(1), 1)).collect::<Vec<_>>();
    let mut outcomes = Outcomes::new();
    assert!(!memory.store.take_now(&charges(10), &mut outcomes).allowed, "eleven units do not fit into ten");
    assert!(memory.store.take_now(&charges(9), &mut outcomes).allowed);
    assert_eq!((outcomes.len(), outcomes[8].remaining), (9, 0));
}

fn is_overflow(outcome: &Outcome) -> bool {
    outcome.source == Source::Overflow
}
