//! Async buckets: how far a fleet exceeds a limit before its nodes know, and what it does without the store.

use tollgate_core::{Clock, FixedWindow, Limit, Sharing, Source, Span, Time};
use tollgate_store::FleetConfig;

use crate::world::{Event, Network, World, charge};

const INTERVAL: Span = Span::from_millis(250);

fn admitted_between(events: &[Event], from: Time, to: Time) -> u64 {
    events.iter().filter(|event| from <= event.time && event.time < to).map(|event| event.cost).sum()
}

/// Ten nodes, 1,000/s, twice that offered: no second exceeds the limit by more than a fifth, or falls far below it.
#[test]
fn ten_nodes_exceed_the_limit_by_at_most_a_fifth() {
    for seed in 1..=3 {
        let mut world = World::new(10, FleetConfig::default(), Span::from_millis(1), seed);
        let limit = Limit::per_second(1_000).unwrap();
        let start = world.clock.now();
        world.load(Span::from_secs(6), 200, |_| charge(1, limit, Sharing::Async));
        let events = world.admitted();
        let at = |millis: u64| start.after(Span::from_millis(millis));
        let burst = admitted_between(&events, start, at(1_000));
        assert!(burst <= 2_400, "seed {seed}: {burst} of 2,000 in the first second");
        for second in (1_500..5_000).step_by(250) {
            let admitted = admitted_between(&events, at(second), at(second + 1_000));
            assert!((700..=1_200).contains(&admitted), "seed {seed}: {admitted} in the second after {second} ms");
        }
        assert!(events.iter().all(|event| event.source == Source::Async));
        let stats = world.stats();
        assert!(stats.inner_calls <= 10 * 6 * 5, "one call per node and interval: {stats:?}");
        println!("seed {seed}: {burst} in the first second, {} in all, excess {}", events.len(), stats.async_excess);
    }
}

/// All the load on one node of ten: it soon gets nearly the whole limit.
#[test]
fn a_node_that_carries_the_load_gets_the_limit() {
    let world = World::new(10, FleetConfig::default(), Span::from_millis(1), 1);
    let limit = Limit::per_second(1_000).unwrap();
    let mut draw = world.draw;
    let start = world.clock.now();
    for _ in 0..6 * 20_000 {
        for _ in 0..draw.arrivals(3_000) {
            world.ask(&world.nodes[0], charge(1, limit, Sharing::Async));
        }
        world.tick();
    }
    let events = world.admitted();
    let late = admitted_between(&events, start.after(Span::from_secs(3)), start.after(Span::from_secs(6)));
    assert!((2_400..=3_600).contains(&late), "{late} of 3,000 in three seconds");
}

#[test]
fn a_window_is_shared_as_well() {
    let mut world = World::new(4, FleetConfig::default(), Span::from_millis(1), 1);
    let limit = Limit::FixedWindow(FixedWindow::new(4_000, Span::from_secs(2)).unwrap());
    world.load(Span::from_secs(6), 2_000, |_| charge(1, limit, Sharing::Async));
    let events = world.admitted();
    let mut windows = std::collections::BTreeMap::<u64, u64>::new();
    events.iter().for_each(|event| *windows.entry(event.time.nanos() / 2_000_000_000).or_default() += 1);
    assert!(windows.values().all(|count| (3_000..=4_800).contains(count)), "{windows:?}");
}

/// Without the store each node enforces an even share; its charges are reported when the store is back.
#[test]
fn a_fleet_without_its_store_enforces_even_shares() {
    let config = FleetConfig { async_interval: INTERVAL, ..FleetConfig::default() };
    let mut world = World::new(4, config, Span::from_millis(1), 1);
    let limit = Limit::FixedWindow(FixedWindow::new(100_000, Span::from_secs(3_600)).unwrap());
    world.load(Span::from_secs(1), 1_000, |_| charge(1, limit, Sharing::Async));
    world.link.set(Network::Down);
    let rate = Limit::per_second(1_000).unwrap();
    world.load(Span::from_secs(1), 1_000, |_| charge(2, rate, Sharing::Async));
    let start = world.clock.now();
    world.load(Span::from_secs(3), 1_000, |_| charge(2, rate, Sharing::Async));
    let admitted = admitted_between(&world.admitted(), start, world.clock.now());
    assert!((2_800..=3_200).contains(&admitted), "{admitted} of 3,000 in three seconds alone");
    assert!(world.stats().async_pending > 0);
    world.link.set(Network::Up);
    world.load(Span::from_secs(1), 0, |_| unreachable!("no requests"));
    assert_eq!(world.stats().async_pending, 0);
}

/// The excess that nodes admitted is measured and exported.
#[test]
fn the_error_is_measured() {
    let mut world = World::new(4, FleetConfig { nodes: 1, ..FleetConfig::default() }, Span::ZERO, 1);
    let limit = Limit::FixedWindow(FixedWindow::new(100, Span::from_secs(3_600)).unwrap());
    for node in &world.nodes {
        for _ in 0..24 {
            world.ask(node, charge(1, limit, Sharing::Async));
        }
    }
    world.load(Span::from_millis(600), 0, |_| unreachable!("no requests"));
    assert_eq!(world.stats().async_excess, 0, "{:?}", world.stats());
    for node in &world.nodes {
        for _ in 0..4 {
            world.ask(node, charge(1, limit, Sharing::Async));
        }
    }
    world.load(Span::from_millis(600), 0, |_| unreachable!("no requests"));
    let beyond = world.admitted().len() as u64 - 100;
    assert!(beyond > 0);
    assert_eq!(world.stats().async_excess, beyond, "{:?}", world.stats());
}
