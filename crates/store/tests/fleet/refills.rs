//! Refills in the background: requests that their lease paid for are answered at once, and all bounds hold as before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use tollgate_core::{Ask, Charge, FixedWindow, LeaseSize, Limit, Sharing, Source, Span};
use tollgate_store::{FleetConfig, FleetStats, Outcomes};

use crate::world::{Network, World, charge, excess};

const LEASED: Sharing = Sharing::Leased(LeaseSize::Auto);
const SEEDS: u64 = 3;

fn hourly(limit: u64) -> Limit {
    Limit::FixedWindow(FixedWindow::new(limit, Span::from_secs(3_600)).unwrap())
}

/// What the shared store counts as used.
fn used(world: &World, limit: Limit) -> u64 {
    let mut outcomes = Outcomes::new();
    let peek = Charge { ask: Ask::Peek(1), ..charge(1, limit, LEASED) };
    let _ = world.memory.take_now(&[peek], &mut outcomes);
    outcomes[0].used
}

fn balances(stats: &FleetStats) -> bool {
    stats.lease_granted == stats.lease_spent + stats.lease_returned + stats.lease_stranded + stats.lease_held
}

/// Requests that a lease paid for, and how many of them waited for the store.
fn leased_and_waiting(world: &World) -> (usize, usize) {
    let log = world.log.borrow();
    let leased = || log.iter().filter(|event| event.allowed && event.source == Source::Lease);
    (leased().count(), leased().filter(|event| event.waited > Span::ZERO).count())
}

#[test]
fn a_request_that_its_lease_paid_for_does_not_wait_for_the_refill() {
    for seed in 1..=SEEDS {
        for in_background in [false, true] {
            let mut world = World::new(2, FleetConfig::default(), Span::from_millis(5), seed);
            if in_background {
                world.run_refills();
            }
            world.load(Span::from_secs(2), 2_000, |_| charge(1, Limit::per_second(100_000).unwrap(), LEASED));
            let (leased, waiting) = leased_and_waiting(&world);
            assert!(leased > 6_000, "seed {seed}: only {leased} by lease");
            match in_background {
                true => assert_eq!(waiting, 0, "seed {seed}: of {leased}"),
                false => assert!(waiting > 10, "seed {seed}: a request that refills waits for the answer"),
            }
            let stats = world.stats();
            assert!(stats.inner_calls * 40 <= world.log.borrow().len() as u64, "seed {seed}: {stats:?}");
        }
    }
}

/// P5 and P7 as in the tests of leases: the bound, the price and what is stranded do not depend on who refills.
#[test]
fn p5_holds_with_refills_in_the_background() {
    for (seed, delay) in (1..=SEEDS).flat_map(|seed| [(seed, 0), (seed, 1)]) {
        let mut world = World::new(4, FleetConfig::default(), Span::from_millis(delay), seed);
        world.run_refills();
        let limit = Limit::per_second(10_000).unwrap();
        let mut most_held = 0;
        for _ in 0..2_000 {
            world.load(Span::from_millis(1), 4_000, |_| charge(1, limit, LEASED));
            let held = world.nodes.iter().map(|node| node.fleet.stats().lease_held);
            most_held = most_held.max(held.max().unwrap_or(0));
        }
        let (stats, decisions) = (world.stats(), world.log.borrow().len() as u64);
        assert!(decisions / stats.inner_calls >= 50, "seed {seed}, delay {delay}: {stats:?}");
        assert!(balances(&stats), "seed {seed}: {stats:?}");
        let lost = stats.lease_granted - stats.lease_spent - stats.lease_returned;
        assert!(lost * 20 <= stats.lease_granted, "seed {seed}: {lost} of {} stranded", stats.lease_granted);
        let admitted = world.admitted();
        let most = 10_000 + 2 * 10_000;
        assert!(admitted.len() * 100 >= most * 95, "seed {seed}: {} of {most} admitted", admitted.len());
        let over = excess(&admitted, 10_000, Span::from_nanos(100_000));
        assert!(over <= (4 * most_held).min(10_000), "seed {seed}: over by {over}, nodes hold {most_held}");
    }
}

/// While the store is away, what was granted is spent and nothing more, and the task refills again afterwards.
#[test]
fn only_confirmed_units_are_spent_and_refills_resume() {
    for network in [Network::Down, Network::AnswersLost] {
        let mut world = World::new(2, FleetConfig::default(), Span::from_millis(1), 1);
        world.run_refills();
        let limit = hourly(100_000);
        world.load(Span::from_secs(1), 2_000, |_| charge(1, limit, LEASED));
        let (held, before) = (world.stats().lease_held, world.admitted().len());
        world.link.set(network);
        world.load(Span::from_millis(300), 2_000, |_| charge(1, limit, LEASED));
        let during = world.admitted().len() - before;
        assert!(during as u64 <= held + 8 && during > 0, "{during} admitted by {held} units held");
        world.link.set(Network::Up);
        world.load(Span::from_millis(300), 2_000, |_| charge(1, limit, LEASED));
        assert!(world.admitted().len() - before - during > 1_000, "refills resumed");
        assert!(used(&world, limit) >= world.admitted().len() as u64, "nothing was spent that was not debited");
    }
}

/// One node with a lease whose refill has just been sent.
fn while_refilling(seed: u64) -> World {
    let mut world = World::new(1, FleetConfig::default(), Span::from_millis(4), seed);
    world.run_refills();
    let limit = hourly(1_000_000);
    world.load(Span::from_millis(500), 4_000, |_| charge(1, limit, LEASED));
    let calls = world.nodes[0].fleet.stats().inner_calls;
    while world.nodes[0].fleet.stats().inner_calls == calls {
        world.ask(&world.nodes[0], charge(1, limit, LEASED));
        world.tick();
    }
    world
}

/// Units of a refill that was under way when the node closed go back as well.
#[test]
fn p7_a_refill_that_arrives_after_closing_is_given_back() {
    for seed in 1..=2 * SEEDS {
        let (limit, world) = (hourly(1_000_000), while_refilling(seed));
        let fleet = world.nodes[0].fleet.clone();
        world.spawn(&world.nodes[0], async move { fleet.close().await });
        (0..1_000).for_each(|_| world.tick());
        let stats = world.stats();
        assert_eq!(used(&world, limit), world.admitted().len() as u64, "seed {seed}: {stats:?}");
        assert_eq!((stats.lease_held, stats.lease_stranded), (0, 0), "seed {seed}: {stats:?}");
    }
}

/// `close` waits for refills under way: the task may stop as soon as it returns.
#[test]
fn p7_closing_waits_for_refills_under_way() {
    for seed in 1..=2 * SEEDS {
        let (limit, world) = (hourly(1_000_000), while_refilling(seed));
        let (fleet, closed) = (world.nodes[0].fleet.clone(), Arc::new(AtomicBool::new(false)));
        let done = closed.clone();
        world.spawn(&world.nodes[0], async move {
            fleet.close().await;
            done.store(true, Ordering::Relaxed);
        });
        let ticks = (0..1_000).take_while(|_| {
            world.tick();
            !closed.load(Ordering::Relaxed)
        });
        assert!(ticks.count() < 1_000, "seed {seed}: it closes");
        let stats = world.stats();
        assert_eq!(used(&world, limit), world.admitted().len() as u64, "seed {seed}: {stats:?}");
    }
}

/// A task that is stopped with a refill under way blocks none: the next request that finds the lease low asks itself.
#[test]
fn requests_refill_again_when_the_task_stops() {
    let mut world = World::new(1, FleetConfig::default(), Span::from_millis(1), 1);
    let limit = hourly(1_000_000);
    let fleet = world.nodes[0].fleet.clone();
    let mut task = Box::pin(fleet.run_refills());
    let mut poll = || assert!(task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    poll();
    for _ in 0..500 {
        world.load(Span::from_millis(1), 2_000, |_| charge(1, limit, LEASED));
        poll();
    }
    let (_, waiting) = leased_and_waiting(&world);
    assert_eq!(waiting, 0);
    drop(task);
    world.log.borrow_mut().clear();
    let before = fleet.stats().inner_calls;
    world.load(Span::from_millis(500), 2_000, |_| charge(1, limit, LEASED));
    let (leased, waiting) = leased_and_waiting(&world);
    assert!(waiting > 0, "requests ask for their refills");
    let calls = fleet.stats().inner_calls - before;
    assert!(leased > 500 && calls < 100, "leases go on: {leased} by lease, {calls} calls");
}
