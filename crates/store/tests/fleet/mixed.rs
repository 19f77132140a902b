//! Requests with charges of every kind: all or nothing, whichever refuses or fails.

use std::sync::Arc;
use std::task::{Context, Waker};

use tollgate_core::{
    Ask, Charge, Enforcement, FixedWindow, LeaseSize, Limit, ManualClock, Outcome, Receipt, Sharing, Source, Span,
    Time, Wait,
};
use tollgate_store::{Fleet, FleetConfig, Memory, MemoryConfig, Outcomes, Store, StoreErrorKind, Taken};

use crate::world::{Network, Remote, SkewedClock, charge, now};

const LEASED: Sharing = Sharing::Leased(LeaseSize::Auto);

fn fleet_of(nodes: u64) -> (Fleet<Remote>, ManualClock) {
    let clock = ManualClock::at(Time::from_secs(1_700_000_000));
    let memory = Arc::new(Memory::with_clock(MemoryConfig::default(), Arc::new(clock.clone())));
    let remote = Remote { nodes, ..Remote::new(memory, clock.clone()) };
    let skewed = SkewedClock(clock.clone(), Span::from_secs(99));
    (Fleet::new(remote, FleetConfig::default(), Arc::new(skewed)), clock)
}

fn window(limit: u64) -> Limit {
    Limit::FixedWindow(FixedWindow::new(limit, Span::from_secs(3_600)).unwrap())
}

fn take(fleet: &Fleet<Remote>, charges: &[Charge]) -> (Taken, Vec<Outcome>) {
    let mut outcomes = Outcomes::new();
    let taken = now(fleet.take(charges, Span::from_millis(25), &mut outcomes)).unwrap();
    assert_eq!(outcomes.len(), charges.len(), "one outcome per charge");
    for (charge, outcome) in charges.iter().zip(&outcomes) {
        assert!(outcome.remaining <= outcome.limit, "{charge:?}: {outcome:?}");
    }
    (taken, outcomes.to_vec())
}

/// Units in use by the store's count.
fn used(fleet: &Fleet<Remote>, number: u64, limit: Limit) -> u64 {
    let mut outcomes = Outcomes::new();
    let _ =
        fleet.inner().memory.take_now(&[Charge { ask: Ask::Peek(1), ..charge(number, limit, LEASED) }], &mut outcomes);
    outcomes[0].used
}

/// Sends requests until the node holds a lease of the bucket.
fn warm(fleet: &Fleet<Remote>, clock: &ManualClock, charge: Charge) {
    for _ in 0..200 {
        clock.advance(Span::from_millis(1));
        assert!(take(fleet, &[charge]).0.allowed);
    }
    assert!(fleet.stats().lease_held > 4, "{:?}", fleet.stats());
}

/// Every kind of charge in one request; whichever refuses, none is charged.
#[test]
fn one_refusal_charges_no_bucket() {
    for refuses in 0..4 {
        let (fleet, clock) = fleet_of(1);
        let limit = |place| window(if place == refuses { 250 } else { 100_000 });
        let kinds = [Sharing::Exact, LEASED, Sharing::Async, Sharing::Local];
        let charges: Vec<Charge> = (0..4).map(|place| charge(place as u64, limit(place), kinds[place])).collect();
        let mut admitted = 0;
        for _ in 0..400 {
            clock.advance(Span::from_millis(1));
            let (taken, outcomes) = take(&fleet, &charges);
            admitted += u64::from(taken.allowed);
            for (place, outcome) in outcomes.iter().enumerate() {
                assert_eq!(outcome.granted, u64::from(taken.allowed), "charge {place}");
                assert_eq!(outcome.allowed, taken.allowed || place != refuses, "charge {place}: {outcome:?}");
                assert_eq!(outcome.used, admitted, "charge {place} while {refuses} refuses");
            }
        }
        assert_eq!(admitted, 250, "{refuses} refuses");
        now(fleet.close());
        for place in 0..3 {
            assert_eq!(used(&fleet, place as u64, limit(place)), 250, "bucket {place} while {refuses} refuses");
        }
        assert_eq!(used(&fleet, 3, limit(3)), 0, "local charges are not reported to the store");
    }
}

#[test]
fn a_lease_answers_as_the_store_would() {
    for limit in [window(1_000), Limit::per_minute(1_000).unwrap()] {
        let (fleet, clock) = fleet_of(1);
        let exact = Charge { sharing: Sharing::Exact, ..charge(1, limit, LEASED) };
        warm(&fleet, &clock, charge(1, limit, LEASED));
        let (_, leased) = take(&fleet, &[charge(1, limit, LEASED)]);
        let mut truth = Outcomes::new();
        let _ = fleet.inner().memory.take_now(&[Charge { ask: Ask::Peek(1), ..exact }], &mut truth);
        let unspent = fleet.stats().lease_held;
        assert_eq!((leased[0].source, leased[0].granted), (Source::Lease, 1));
        assert_eq!(leased[0].remaining, truth[0].remaining + unspent, "{limit:?}");
    }
}

/// The wait of a refused leased charge is sufficient.
#[test]
fn the_wait_reported_by_a_lease_is_sufficient() {
    let (fleet, clock) = fleet_of(1);
    let limit = Limit::per_second(500).unwrap().burst(20).unwrap();
    let mut refused = 0;
    for round in 0..2_000 {
        clock.advance(Span::from_nanos(200_000));
        let cost = 1 + round % 7;
        let one = Charge { ask: Ask::Consume(cost), ..charge(1, limit, LEASED) };
        let (taken, outcomes) = take(&fleet, &[one]);
        if !taken.allowed {
            refused += 1;
            let Wait::For(wait) = outcomes[0].wait else { panic!("round {round}: {:?}", outcomes[0]) };
            assert!(wait <= Span::from_millis(60), "round {round}: {wait}");
            clock.advance(wait);
            let (taken, outcomes) = take(&fleet, &[one]);
            assert!(taken.allowed, "round {round}: waited {wait} in vain: {:?}", outcomes[0]);
        }
    }
    assert!(refused > 100);
}

/// A cost above what is left is refused and keeps nothing; a cost above the capacity never passes.
#[test]
fn a_large_cost_is_paid_whole_or_not_at_all() {
    let (fleet, clock) = fleet_of(1);
    let limit = window(300);
    let ask = |cost| Charge { ask: Ask::Consume(cost), ..charge(1, limit, LEASED) };
    warm(&fleet, &clock, ask(1));
    let (taken, outcomes) = take(&fleet, &[ask(101)]);
    assert!(!taken.allowed && outcomes[0].granted == 0, "{outcomes:?}");
    assert_eq!(outcomes[0].remaining, 100, "what is held counts");
    let (taken, outcomes) = take(&fleet, &[ask(301)]);
    assert!(!taken.allowed && outcomes[0].wait == Wait::Never);
    let (taken, outcomes) = take(&fleet, &[ask(100)]);
    assert!(taken.allowed && outcomes[0].granted == 100 && outcomes[0].remaining == 0, "{outcomes:?}");
    assert_eq!((used(&fleet, 1, limit), fleet.stats().lease_held), (300, 0));
}

#[test]
fn peeking_changes_nothing() {
    let (fleet, clock) = fleet_of(1);
    let limit = window(300);
    warm(&fleet, &clock, charge(1, limit, LEASED));
    let before = (used(&fleet, 1, limit), fleet.stats().lease_held);
    for (cost, allowed) in [(0, true), (1, true), (100, true), (101, false)] {
        for ask in [Ask::Peek(cost), if cost == 0 { Ask::Consume(0) } else { Ask::Peek(cost) }] {
            let (taken, outcomes) = take(&fleet, &[Charge { ask, ..charge(1, limit, LEASED) }]);
            assert_eq!((taken.allowed, outcomes[0].granted), (allowed, 0), "{ask:?}: {outcomes:?}");
        }
    }
    assert_eq!((used(&fleet, 1, limit), fleet.stats().lease_held), before);
}

#[test]
fn shadow_charges_never_refuse() {
    for sharing in [LEASED, Sharing::Async, Sharing::Local] {
        let (fleet, clock) = fleet_of(1);
        let shadow = Charge { enforcement: Enforcement::Shadow, ..charge(1, window(50), sharing) };
        let real = charge(2, window(1_000), Sharing::Exact);
        let mut shown = 0;
        for _ in 0..100 {
            clock.advance(Span::from_millis(1));
            let (taken, outcomes) = take(&fleet, &[shadow, real]);
            assert!(taken.allowed);
            shown += u64::from(outcomes[0].allowed);
        }
        assert_eq!((shown, used(&fleet, 2, window(1_000))), (50, 100), "{sharing:?}");
    }
}

/// Forced usage is recorded even if the request is denied, and so are charges that count denied requests.
#[test]
fn forced_and_counted_charges_are_recorded_even_if_denied() {
    let (fleet, _) = fleet_of(1);
    let shut = charge(9, window(0), Sharing::Local);
    let forced = Charge { ask: Ask::Force(2), ..charge(1, window(100), LEASED) };
    let counted = Charge { count_denied: true, ..charge(2, window(100), LEASED) };
    let told = Charge { ask: Ask::Force(3), ..charge(3, window(100), Sharing::Async) };
    let plain = charge(4, window(100), Sharing::Exact);
    for _ in 0..5 {
        let (taken, outcomes) = take(&fleet, &[forced, shut, counted, told, plain]);
        assert!(!taken.allowed);
        assert_eq!(outcomes.iter().map(|outcome| outcome.granted).collect::<Vec<_>>(), [2, 0, 1, 3, 0]);
    }
    now(fleet.close());
    let store = [1, 2, 3, 4].map(|number| used(&fleet, number, window(100)));
    assert_eq!(store, [10, 5, 15, 0]);
}

#[test]
fn a_local_share_never_asks_the_store() {
    let (fleet, clock) = fleet_of(4);
    let limit = Limit::per_second(100).unwrap();
    let one = charge(1, limit, Sharing::Local);
    let admitted = (0..100).filter(|_| take(&fleet, &[one]).0.allowed).count();
    assert_eq!(admitted, 25, "a quarter");
    let (_, outcomes) = take(&fleet, &[one]);
    assert_eq!((outcomes[0].source, outcomes[0].limit), (Source::Local, 25));
    clock.advance(Span::from_millis(400));
    assert!(fleet.try_take(&[one], &mut Outcomes::new()).is_some_and(|taken| taken.allowed));
    let stats = fleet.stats();
    assert_eq!((stats.inner_calls, stats.by_local), (0, 102));
}

/// Receipts go to the share, to unreported charges, or to the store.
#[test]
fn receipts_go_back_to_where_they_came_from() {
    for (sharing, source) in
        [(Sharing::Local, Source::Local), (Sharing::Async, Source::Async), (Sharing::Exact, Source::Bucket)]
    {
        let (fleet, _) = fleet_of(2);
        let big = Charge { ask: Ask::Consume(40), ..charge(1, window(100), sharing) };
        let (taken, outcomes) = take(&fleet, &[big]);
        assert!(taken.allowed && outcomes[0].source == source);
        let used = || take(&fleet, &[Charge { ask: Ask::Peek(1), ..big }]).1[0].used;
        let before = used();
        assert!(before >= 40);
        assert_eq!(now(fleet.give_back(&[Receipt::of(&big, &outcomes[0])])), Ok(1), "{sharing:?}");
        assert_eq!(used(), 0, "{sharing:?}");
    }
    let (fleet, clock) = fleet_of(1);
    let one = charge(1, window(1_000), LEASED);
    warm(&fleet, &clock, one);
    let (_, outcomes) = take(&fleet, &[one]);
    let before = used(&fleet, 1, window(1_000));
    assert_eq!((outcomes[0].source, now(fleet.give_back(&[Receipt::of(&one, &outcomes[0])]))), (Source::Lease, Ok(1)));
    assert_eq!(used(&fleet, 1, window(1_000)), before - 1);
}

/// A receipt that left its process was charged in the store, and may arrive at any node: the store refunds it and
/// spends its number. It must not refund unreported charges of other requests.
#[test]
fn a_receipt_with_a_number_is_refunded_by_the_store() {
    let (fleet, _) = fleet_of(2);
    let reserved = Charge { ask: Ask::Consume(40), ..charge(1, window(100), Sharing::Exact) };
    let (_, outcomes) = take(&fleet, &[reserved]);
    let others = Charge { ask: Ask::Consume(10), ..charge(1, window(100), Sharing::Async) };
    assert_eq!(take(&fleet, &[others]).1[0].source, Source::Async);
    for given in [1, 0] {
        let receipt = Receipt { number: Some(7), ..Receipt::of(&reserved, &outcomes[0]) };
        assert_eq!(now(fleet.give_back(&[receipt])), Ok(given));
        assert_eq!((used(&fleet, 1, window(100)), fleet.stats().async_pending), (0, 10), "refunded by the store, once");
    }
    now(fleet.close());
    assert_eq!(used(&fleet, 1, window(100)), 10);
}

/// A request over a lease and the store: if the call fails, nothing is charged and the lease is restored.
#[test]
fn a_failed_call_undoes_all_charges() {
    for (network, kind) in
        [(Network::Down, StoreErrorKind::Unavailable), (Network::AnswersLost, StoreErrorKind::Indeterminate)]
    {
        let (fleet, clock) = fleet_of(1);
        let leased = charge(1, window(100_000), LEASED);
        warm(&fleet, &clock, leased);
        let local = charge(2, window(100), Sharing::Local);
        let told = charge(3, window(100), Sharing::Async);
        let exact = charge(4, window(100), Sharing::Exact);
        let held = fleet.stats().lease_held;
        fleet.inner().link.set(network);
        let mut outcomes = Outcomes::new();
        let request = [leased, local, told, exact];
        let error = now(fleet.take(&request, Span::from_millis(25), &mut outcomes)).unwrap_err();
        assert_eq!(error.kind, kind);
        assert_eq!((fleet.stats().lease_held, fleet.stats().async_pending), (held, 0));
        let look = |charge: Charge| take(&fleet, &[Charge { ask: Ask::Peek(1), ..charge }]).1[0].used;
        assert_eq!((look(local), look(told)), (0, 0));
        for _ in 0..held {
            assert!(take(&fleet, &[leased]).0.allowed, "held units can still be spent");
        }
        assert!(now(fleet.take(&[leased], Span::from_millis(25), &mut outcomes)).is_err(), "and not one unit more");
    }
}

/// A request that is dropped during the call undoes its charges, and other requests may ask again.
#[test]
fn a_dropped_request_undoes_all_charges() {
    let clock = ManualClock::at(Time::from_secs(1_700_000_000));
    let memory = Arc::new(Memory::with_clock(MemoryConfig::default(), Arc::new(clock.clone())));
    let mut remote = Remote::new(memory, clock.clone());
    remote.delay = Span::from_nanos(2);
    let fleet = Fleet::new(remote, FleetConfig::default(), Arc::new(clock.clone()));
    let limit = window(100_000);
    let poll = |charges: &[Charge]| {
        let mut outcomes = Outcomes::new();
        let mut future = Box::pin(fleet.take(charges, Span::from_millis(25), &mut outcomes));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..4 {
            if let std::task::Poll::Ready(taken) = future.as_mut().poll(&mut context) {
                return Some(taken.unwrap());
            }
            clock.advance(Span::from_nanos(1));
        }
        None
    };
    for _ in 0..200 {
        clock.advance(Span::from_millis(1));
        assert!(poll(&[charge(1, limit, LEASED)]).unwrap().allowed);
    }
    let before = fleet.stats();
    let request = [charge(1, limit, LEASED), charge(2, limit, Sharing::Exact), charge(3, limit, Sharing::Async)];
    let mut outcomes = Outcomes::new();
    let mut future = Box::pin(fleet.take(&request, Span::from_millis(25), &mut outcomes));
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(fleet.stats().lease_held < before.lease_held && fleet.stats().async_pending == 1);
    drop(future);
    assert_eq!((fleet.stats().lease_held, fleet.stats().async_pending), (before.lease_held, 0));
    // Now a request that asks for a batch and is dropped before the answer.
    loop {
        let mut outcomes = Outcomes::new();
        let mut future = Box::pin(fleet.take(&request[..1], Span::from_millis(25), &mut outcomes));
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            break;
        }
    }
    let before = fleet.stats();
    for _ in 0..300 {
        clock.advance(Span::from_millis(1));
        assert!(poll(&[charge(1, limit, LEASED)]).unwrap().allowed);
    }
    let per_call = 300 / (fleet.stats().inner_calls - before.inner_calls);
    assert!(per_call > 5, "leases go on: {per_call} decisions per call");
}

/// `try_take` decides what needs no call, and otherwise leaves no trace, not even of demand.
#[test]
fn try_take_never_calls_and_leaves_no_trace() {
    let (fleet, clock) = fleet_of(1);
    let leased = charge(1, window(100_000), LEASED);
    let mut outcomes = Outcomes::new();
    for _ in 0..10 {
        assert_eq!(fleet.try_take(&[leased], &mut outcomes), None);
        assert_eq!(fleet.try_take(&[leased, charge(2, window(9), Sharing::Local)], &mut outcomes), None);
    }
    assert_eq!((fleet.stats().inner_calls, fleet.stats().leases, fleet.stats().by_local), (0, 0, 0));
    warm(&fleet, &clock, leased);
    let calls = fleet.stats().inner_calls;
    let pair = [leased, charge(2, window(9), Sharing::Local), charge(3, window(9), Sharing::Async)];
    let mut decided = 0;
    while let Some(taken) = fleet.try_take(&pair, &mut outcomes) {
        decided += u64::from(taken.allowed);
        assert!(decided < 100);
        if !taken.allowed {
            break;
        }
    }
    assert_eq!(decided, 9, "until the local share was used up");
    assert_eq!(fleet.stats().inner_calls, calls);
    let exact = charge(4, window(9), Sharing::Exact);
    let held = fleet.stats().lease_held;
    assert_eq!(fleet.try_take(&[leased, exact], &mut outcomes), None);
    assert_eq!(fleet.stats().lease_held, held);
}

/// New keys beyond the bound need a call each.
#[test]
fn the_memory_of_leases_is_bounded() {
    let clock = ManualClock::at(Time::from_secs(1_700_000_000));
    let memory = Arc::new(Memory::with_clock(MemoryConfig::default(), Arc::new(clock.clone())));
    let config = FleetConfig { max_leases: 128, max_async: 128, ..FleetConfig::default() };
    let fleet = Fleet::new(Remote::new(memory, clock.clone()), config, Arc::new(clock.clone()));
    for number in 0..2_000 {
        for _ in 0..3 {
            assert!(take(&fleet, &[charge(number, window(100), LEASED)]).0.allowed);
        }
        assert!(take(&fleet, &[charge(10_000 + number, window(100), Sharing::Async)]).0.allowed);
    }
    assert!(fleet.stats().leases <= 128);
    assert!(used(&fleet, 1_999, window(100)) >= 3);
    assert_eq!(used(&fleet, 11_999, window(100)), 1, "no room to remember it: the store was asked");
    clock.advance(Span::from_secs(3));
    now(fleet.upkeep());
    assert_eq!((fleet.stats().leases, fleet.stats().lease_held), (0, 0), "idle leases make room");
}

/// A changed limit ends the lease that was taken under the old one.
#[test]
fn a_changed_limit_ends_the_lease() {
    let (fleet, clock) = fleet_of(1);
    warm(&fleet, &clock, charge(1, window(1_000), LEASED));
    let (taken, outcomes) = take(&fleet, &[charge(1, window(150), LEASED)]);
    assert!(!taken.allowed, "{outcomes:?}");
    now(fleet.upkeep());
    let stats = fleet.stats();
    assert_eq!(stats.lease_granted, stats.lease_spent + stats.lease_returned, "{stats:?}");
    assert_eq!(used(&fleet, 1, window(150)), 200);
}
