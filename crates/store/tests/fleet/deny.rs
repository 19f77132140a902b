//! The deny cache: a refused key costs the store almost no calls, and the cache refuses only what the store would
//! refuse.

use std::sync::Arc;

use tollgate_core::{
    Ask, Charge, Clock, Concurrency, Enforcement, FixedWindow, Gcra, LeaseSize, Limit, ManualClock, Outcome, Quota,
    Receipt, Sharing, SlidingCounter, SlidingLog, SlotId, Soft, Span, Time, Wait,
};
use tollgate_store::{Fleet, FleetConfig, Memory, MemoryConfig, Outcomes, Store, Taken};

use crate::world::{Draw, Remote, SkewedClock, World, charge, now};

fn node() -> (Fleet<Remote>, ManualClock) {
    let clock = ManualClock::at(Time::from_secs(1_700_000_000));
    let memory = Arc::new(Memory::with_clock(MemoryConfig::default(), Arc::new(clock.clone())));
    let remote = Remote::new(memory, clock.clone());
    let skewed = SkewedClock(clock.clone(), Span::from_secs(77));
    (Fleet::new(remote, FleetConfig::default(), Arc::new(skewed)), clock)
}

fn take(fleet: &Fleet<Remote>, charges: &[Charge]) -> (Taken, Outcomes) {
    let mut outcomes = Outcomes::new();
    let taken = now(fleet.take(charges, Span::from_millis(25), &mut outcomes)).unwrap();
    assert_eq!(outcomes.len(), charges.len());
    (taken, outcomes)
}

fn calls(fleet: &Fleet<Remote>) -> u64 {
    fleet.stats().inner_calls
}

/// At least 99 % of the checks of a hot refused key do not reach the store, with every kind of sharing.
#[test]
fn a_hot_refused_key_hardly_reaches_the_store() {
    let limits = [
        Limit::per_minute(5).unwrap(),
        Limit::FixedWindow(FixedWindow::new(5, Span::from_secs(60)).unwrap()),
        Limit::SlidingLog(SlidingLog::new(5, Span::from_secs(60)).unwrap()),
        Limit::SlidingCounter(SlidingCounter::new(5, Span::from_secs(60)).unwrap()),
        Limit::Quota(Quota::lifetime(5)),
    ];
    for (limit, sharing) in
        limits.into_iter().flat_map(|limit| [(limit, Sharing::Exact), (limit, Sharing::Leased(LeaseSize::Auto))])
    {
        for delay in [0, 1] {
            let mut world = World::new(1, FleetConfig::default(), Span::from_millis(delay), 3);
            world.load(Span::from_secs(5), 2_000, |_| charge(1, limit, sharing));
            let (checks, asked) = (world.log.borrow().len() as u64, world.stats().inner_calls);
            assert!(world.admitted().len() >= 5);
            assert!(asked * 100 <= checks, "{limit:?}, {sharing:?}, {delay} ms: {asked} of {checks} reached the store");
        }
    }
}

/// Random costs and times: whenever the cache refuses, the store would have refused, and its hints are the store's.
#[test]
fn refuses_only_what_the_store_would_refuse() {
    let limits = [
        Limit::Gcra(Gcra::new(100, Span::SECOND, 10).unwrap()),
        Limit::FixedWindow(FixedWindow::new(10, Span::from_millis(70)).unwrap()),
        Limit::SlidingLog(SlidingLog::new(10, Span::from_millis(70)).unwrap()),
        Limit::SlidingCounter(SlidingCounter::new(10, Span::from_millis(70)).unwrap()),
    ];
    // The last kind is a quota, whose bounds follow the clock.
    let limit = |place: usize, now: Time| limits.get(place % 5).copied().unwrap_or_else(|| quota_of(now));
    let mut remembered = 0;
    for seed in 1..=20 {
        let (fleet, clock) = node();
        let mut draw = Draw(seed * 0x9e37_79b9);
        for step in 0..2_000 {
            clock.advance(Span::from_nanos(draw.below(4_000_000)));
            let first = draw.below(5) as usize;
            let mut charges: Vec<Charge> = (first..first + 1 + draw.below(2) as usize)
                .map(|place| Charge {
                    ask: Ask::Consume(1 + draw.below(9)),
                    ..charge(place as u64, limit(place, clock.now()), Sharing::Exact)
                })
                .collect();
            if draw.below(5) == 0 {
                charges[0].enforcement = Enforcement::Shadow;
            }
            let mut expected = Outcomes::new();
            let looks: Vec<Charge> =
                charges.iter().map(|charge| Charge { ask: Ask::Peek(charge.ask.cost()), ..*charge }).collect();
            let would = fleet.inner().memory.take_now(&looks, &mut expected);
            let before = calls(&fleet);
            let (taken, outcomes) = take(&fleet, &charges);
            assert_eq!(taken.allowed, would.allowed, "seed {seed}, step {step}: {charges:?}");
            if calls(&fleet) == before {
                remembered += 1;
                // Nothing was charged, so the stamp is not used.
                expected.iter_mut().zip(&outcomes).for_each(|(expected, got)| expected.stamp = got.stamp);
                assert_eq!(outcomes, expected, "seed {seed}, step {step}: {charges:#?}");
                assert_eq!(taken.now, clock.now(), "the store's time, not the node's");
            }
        }
    }
    assert!(remembered > 1_000, "only {remembered} were answered from memory");
}

/// Ten units per period of 70 ms, with overdraft and rollover.
fn quota_of(now: Time) -> Limit {
    let period = Span::from_millis(70).nanos();
    let start = now.nanos() / period * period;
    let [start, end, next_end] = [0, 1, 2].map(|after| Time::from_nanos(start + after * period));
    Limit::Quota(Quota::new(10, start, end, next_end).unwrap().with_overdraft(2).with_rollover(4))
}

/// The reported wait is sufficient, also if the answer was delayed.
#[test]
fn the_reported_wait_is_sufficient() {
    let clock = ManualClock::at(Time::from_secs(1_700_000_000));
    let memory = Arc::new(Memory::with_clock(MemoryConfig::default(), Arc::new(clock.clone())));
    let fleet = Fleet::new(
        Slow(memory, clock.clone()),
        FleetConfig::default(),
        Arc::new(SkewedClock(clock.clone(), Span::ZERO)),
    );
    let limit = Limit::Gcra(Gcra::new(20, Span::SECOND, 3).unwrap());
    let ask = || {
        let mut outcomes = Outcomes::new();
        let taken = now(fleet.take(&[charge(1, limit, Sharing::Exact)], Span::SECOND, &mut outcomes)).unwrap();
        (taken.allowed, outcomes[0])
    };
    for round in 0..20 {
        while ask().0 {}
        let (_, refused) = ask();
        let Wait::For(wait) = refused.wait else { panic!("round {round}: {refused:?}") };
        clock.advance(wait);
        assert!(ask().0, "round {round}: waited {wait} in vain");
    }
    assert!(fleet.stats().by_deny_cache >= 20, "{:?}", fleet.stats());
}

/// The store's time is only known between bounds; a refusal must be right for the latest time.
#[test]
fn a_delayed_answer_refuses_no_longer_than_the_store() {
    for sharing in [Sharing::Exact, Sharing::Leased(LeaseSize::Auto)] {
        let clock = ManualClock::at(Time::from_secs(1_700_000_000));
        let memory = Arc::new(Memory::with_clock(MemoryConfig::default(), Arc::new(clock.clone())));
        let skewed = SkewedClock(clock.clone(), Span::ZERO);
        let fleet = Fleet::new(Slow(memory.clone(), clock.clone()), FleetConfig::default(), Arc::new(skewed));
        let one = charge(1, Limit::Gcra(Gcra::new(20, Span::SECOND, 3).unwrap()), sharing);
        for step in 0..2_000 {
            clock.advance(Span::from_nanos(700_000));
            let mut outcomes = Outcomes::new();
            let would = memory.take_now(&[Charge { ask: Ask::Peek(1), ..one }], &mut outcomes).allowed;
            let does = now(fleet.take(&[one], Span::SECOND, &mut outcomes)).unwrap().allowed;
            assert!(does || !would, "{sharing:?}, step {step}");
        }
        let stats = fleet.stats();
        assert!(stats.by_deny_cache + stats.by_lease > 500, "{stats:?}");
    }
}

/// A store whose calls and answers take three milliseconds each.
struct Slow(Arc<Memory>, ManualClock);

impl Store for Slow {
    async fn take(
        &self,
        charges: &[Charge],
        _: Span,
        outcomes: &mut Outcomes,
    ) -> Result<Taken, tollgate_store::StoreError> {
        self.1.advance(Span::from_millis(3));
        let taken = self.0.take_now(charges, outcomes);
        self.1.advance(Span::from_millis(3));
        Ok(taken)
    }

    async fn give_back(&self, receipts: &[Receipt]) -> Result<usize, tollgate_store::StoreError> {
        Ok(self.0.give_back_now(receipts))
    }

    async fn forget(&self, buckets: &[Charge]) -> Result<(), tollgate_store::StoreError> {
        self.0.forget_now(buckets);
        Ok(())
    }
}

fn full_key(fleet: &Fleet<Remote>) -> (Charge, Outcome) {
    let limit = Limit::per_minute(3).unwrap();
    let one = charge(1, limit, Sharing::Exact);
    let (_, outcomes) = take(fleet, &[Charge { ask: Ask::Consume(3), ..one }]);
    assert!(!take(fleet, &[one]).0.allowed);
    let before = calls(fleet);
    assert!(!take(fleet, &[one]).0.allowed);
    assert_eq!(calls(fleet), before, "remembered");
    (one, outcomes[0])
}

#[test]
fn a_refund_here_counts_at_once() {
    let (fleet, _) = node();
    let (one, charged) = full_key(&fleet);
    let receipt = Receipt::of(&Charge { ask: Ask::Consume(3), ..one }, &charged);
    assert_eq!(now(fleet.give_back(&[receipt])), Ok(1));
    assert!(take(&fleet, &[one]).0.allowed);
}

#[test]
fn a_forgotten_key_starts_anew_at_once() {
    let (fleet, _) = node();
    let (one, _) = full_key(&fleet);
    now(fleet.forget(&[one])).unwrap();
    assert!(take(&fleet, &[one]).0.allowed);
}

#[test]
fn a_refund_elsewhere_counts_after_the_lifetime_of_an_entry() {
    let (fleet, clock) = node();
    let (one, charged) = full_key(&fleet);
    fleet.inner().memory.give_back_now(&[Receipt::of(&Charge { ask: Ask::Consume(3), ..one }, &charged)]);
    assert!(!take(&fleet, &[one]).0.allowed, "not known yet");
    clock.advance(Span::from_millis(101));
    assert!(take(&fleet, &[one]).0.allowed);
}

/// Charges that are recorded if refused, or refused by more than their bucket, always reach the store.
#[test]
fn some_charges_are_never_remembered() {
    let limit = Limit::per_minute(1).unwrap();
    let slots = Limit::Concurrency(Concurrency::new(1, Span::from_secs(60)).unwrap());
    let plain = charge(1, limit, Sharing::Exact);
    let cases = [
        Charge { count_denied: true, ..plain },
        Charge { ask: Ask::Force(1), ..plain },
        Charge { ask: Ask::UpTo(1), ..plain },
        Charge { soft: Some(Soft { excess: 1, seed: 7 }), ..plain },
        Charge { enforcement: Enforcement::Shadow, ..plain },
        Charge { limit: slots, ask: Ask::Hold(SlotId(7)), ..plain },
    ];
    for special in cases {
        let (fleet, _) = node();
        if let Limit::Concurrency(_) = special.limit {
            let _ = take(&fleet, &[Charge { ask: Ask::Hold(SlotId(1)), ..special }]);
        }
        for round in 0..5 {
            let before = calls(&fleet);
            let _ = take(&fleet, &[special]);
            assert_eq!(calls(&fleet), before + 1, "{special:?}, round {round}");
        }
    }
}

/// The cache also knows the charge that would pass, so the answer is complete; an unknown charge needs the store.
#[test]
fn every_charge_of_a_refused_request_is_known() {
    let (fleet, _) = node();
    let (tight, wide) = (Limit::per_minute(1).unwrap(), Limit::per_minute(100).unwrap());
    let pair = [charge(1, tight, Sharing::Exact), charge(2, wide, Sharing::Exact)];
    let verdicts: Vec<bool> = (0..10).map(|_| take(&fleet, &pair).0.allowed).collect();
    assert_eq!(verdicts.iter().filter(|allowed| **allowed).count(), 1);
    assert_eq!(calls(&fleet), 2);
    let (_, outcomes) = take(&fleet, &pair);
    assert_eq!((outcomes[1].allowed, outcomes[1].remaining, outcomes[1].granted), (true, 99, 0));
    let (taken, _) = take(&fleet, &[pair[1]]);
    assert!(taken.allowed, "a known bucket with room does not decide");
    assert!(!take(&fleet, &[pair[0], charge(3, wide, Sharing::Exact)]).0.allowed);
    assert_eq!(calls(&fleet), 4, "the third bucket was not known");
}

/// A flood of refused keys is bounded, and old entries make room.
#[test]
fn a_flood_of_refused_keys_is_bounded() {
    let clock = ManualClock::at(Time::from_secs(1_700_000_000));
    let memory = Arc::new(Memory::with_clock(MemoryConfig::default(), Arc::new(clock.clone())));
    let config = FleetConfig { max_denials: 1_000, ..FleetConfig::default() };
    let fleet = Fleet::new(Remote::new(memory, clock.clone()), config, Arc::new(clock.clone()));
    let shut = Limit::per_minute(0).unwrap();
    for number in 0..20_000 {
        let _ = take(&fleet, &[charge(number, shut, Sharing::Exact)]);
    }
    let held = fleet.stats().deny_entries;
    assert!((900..=1_100).contains(&held), "{held} entries");
    clock.advance(Span::from_millis(150));
    for number in 20_000..40_000 {
        let _ = take(&fleet, &[charge(number, shut, Sharing::Exact)]);
    }
    assert!(fleet.stats().deny_entries <= 1_100);
    let before = calls(&fleet);
    let last = (20_000..40_000)
        .filter(|number| fleet.try_take(&[charge(*number, shut, Sharing::Exact)], &mut Outcomes::new()).is_some());
    assert!(last.count() > 900, "the old ones made room");
    assert_eq!(calls(&fleet), before);
    clock.advance(Span::SECOND);
    now(fleet.upkeep());
    assert_eq!(fleet.stats().deny_entries, 0, "upkeep sweeps");
}

/// `try_take` answers what needs no call, and leaves no trace otherwise.
#[test]
fn try_take_answers_what_is_remembered() {
    let (fleet, clock) = node();
    let (one, _) = full_key(&fleet);
    let mut outcomes = Outcomes::new();
    assert!(!fleet.try_take(&[one], &mut outcomes).unwrap().allowed);
    assert_eq!(fleet.try_take(&[charge(2, one.limit, Sharing::Exact)], &mut outcomes), None);
    clock.advance(Span::from_millis(80));
    assert_eq!(fleet.try_take(&[one], &mut outcomes), None, "a request should ask again");
    let before = calls(&fleet);
    assert!(!take(&fleet, &[one]).0.allowed && calls(&fleet) == before + 1, "and does");
}
