//! Leases: how often the store is called, how many units are stranded, and that the bound holds.

use tollgate_core::{Ask, Charge, Clock, FixedWindow, LeaseSize, Limit, Sharing, Source, Span, Time};
use tollgate_store::{FleetConfig, Outcomes};

use crate::world::{Draw, Event, Network, World, charge, excess};

const LEASED: Sharing = Sharing::Leased(LeaseSize::Auto);
const SEEDS: u64 = 3;

fn window(limit: u64, span: Span) -> Limit {
    Limit::FixedWindow(FixedWindow::new(limit, span).unwrap())
}

/// Runs `world` for a while, and returns the most units that any node held at any time.
fn most_held(world: &mut World, millis: u64, per_second: u64, mut which: impl FnMut(&mut Draw) -> Charge) -> u64 {
    let mut most = 0;
    for _ in 0..millis {
        world.load(Span::from_millis(1), per_second, &mut which);
        let held = world.nodes.iter().map(|node| node.fleet.stats().lease_held);
        most = most.max(held.max().unwrap_or(0));
    }
    most
}

/// Units admitted in the busiest span of that length after `from`.
fn busiest(events: &[Event], from: Time, span: Span) -> usize {
    let after: Vec<Time> = events.iter().map(|event| event.time).filter(|time| *time >= from).collect();
    let within = |start: usize| after[start..].iter().take_while(|time| time.since(after[start]) < span).count();
    (0..after.len()).map(within).max().unwrap_or(0)
}

/// P5, P7 and the price, in one run: a key limited to 10,000/s, four nodes offering 4,000/s each.
#[test]
fn p5_a_hot_key_costs_few_calls_strands_little_and_keeps_the_bound() {
    for (seed, delay) in (1..=SEEDS).flat_map(|seed| [(seed, 0), (seed, 1)]) {
        let mut world = World::new(4, FleetConfig::default(), Span::from_millis(delay), seed);
        let limit = Limit::per_second(10_000).unwrap();
        let q = most_held(&mut world, 4_000, 4_000, |_| charge(1, limit, LEASED));
        let (stats, decisions) = (world.stats(), world.log.borrow().len() as u64);
        let admitted = world.admitted();
        let per_call = decisions / stats.inner_calls;
        assert!(per_call >= 50, "seed {seed}, delay {delay}: {per_call} decisions per call");
        let lost = stats.lease_granted - stats.lease_spent - stats.lease_returned;
        assert!(lost * 20 <= stats.lease_granted, "seed {seed}: {lost} of {} stranded", stats.lease_granted);
        let most = 10_000 + 4 * 10_000;
        assert!(admitted.len() * 100 >= most * 95, "seed {seed}: {} of {most} admitted", admitted.len());
        let over = excess(&admitted, 10_000, Span::from_nanos(100_000));
        assert!(over <= (4 * q).min(10_000), "seed {seed}: over by {over}, nodes hold {q}");
    }
}

/// Ten nodes, 1,000/s, twice that offered: once the burst is spent, no second exceeds the limit by more than 5 %.
#[test]
fn p5_ten_nodes_exceed_the_limit_by_at_most_a_twentieth() {
    for seed in 1..=SEEDS {
        let mut world = World::new(10, FleetConfig::default(), Span::from_millis(1), seed);
        let limit = Limit::per_second(1_000).unwrap();
        let start = world.clock.now();
        world.load(Span::from_secs(5), 200, |_| charge(1, limit, LEASED));
        let admitted = world.admitted();
        let most = busiest(&admitted, start.after(Span::from_millis(1_500)), Span::SECOND);
        assert!((950..=1_050).contains(&most), "seed {seed}: {most} in one second");
        assert!(excess(&admitted, 1_000, Span::from_millis(1)) <= 50, "seed {seed}");
    }
}

/// Bursts, pauses, and nodes that crash and join: leases are debited before use, so a crash never admits more.
#[test]
fn p5_holds_through_bursts_pauses_and_crashes() {
    for seed in 1..=2 * SEEDS {
        let config = FleetConfig { lease_ttl: Span::from_millis(500), ..FleetConfig::default() };
        let mut world = World::new(4, config, Span::from_millis(seed % 3), seed);
        let limit = Limit::per_second(2_000).unwrap().burst(200).unwrap();
        let mut q = 0;
        for phase in 0..30 {
            let rate = [20, 200, 800, 3_000][world.draw.below(4) as usize];
            let span = 20 + world.draw.below(200);
            q = q.max(most_held(&mut world, span, rate, |draw| Charge {
                ask: Ask::Consume(1 + draw.below(3)),
                ..charge(1, limit, LEASED)
            }));
            if phase % 5 == 4 {
                let place = world.draw.below(4) as usize;
                world.crash(place);
                world.join();
            }
        }
        let over = excess(&world.admitted(), 200, Span::from_nanos(500_000));
        let bound = (4 * q).min(2_000 / 2);
        assert!(over <= bound, "seed {seed}: over by {over}, bound {bound}");
    }
}

/// P6: the lease of a window ends with it, on nodes with arbitrary clocks and delayed answers.
#[test]
fn p6_no_window_admits_more_than_its_limit() {
    for seed in 1..=2 * SEEDS {
        let mut world = World::new(4, FleetConfig::default(), Span::from_millis(seed), seed);
        let limit = window(400, Span::from_millis(100));
        for _ in 0..8 {
            let rate = [300, 1_000, 4_000][world.draw.below(3) as usize];
            world.load(Span::from_millis(250), rate, |_| charge(1, limit, LEASED));
            if world.draw.below(3) == 0 {
                world.crash(0);
                world.join();
            }
        }
        let mut windows = std::collections::BTreeMap::<u64, u64>::new();
        let admitted = world.admitted();
        admitted.iter().for_each(|event| *windows.entry(event.time.nanos() / 100_000_000).or_default() += 1);
        let most = windows.values().max().copied().unwrap_or(0);
        assert!(windows.values().all(|count| *count <= 400), "seed {seed}: {most} in a window of 400");
        assert!(most == 400, "seed {seed}: only {most}");
        assert!(admitted.iter().any(|event| event.source == Source::Lease), "seed {seed}: leases were in use");
    }
}

/// P7: units that a node holds when it closes, or when requests stop, go back to the bucket.
#[test]
fn p7_a_node_that_closes_or_is_idle_returns_its_units() {
    for closes in [false, true] {
        let mut world = World::new(2, FleetConfig::default(), Span::ZERO, 1);
        let limit = window(100_000, Span::from_secs(3_600));
        world.load(Span::from_secs(1), 1_000, |_| charge(1, limit, LEASED));
        assert!(world.stats().lease_held > 50, "{:?}", world.stats());
        match closes {
            true => world.nodes.iter().for_each(|node| {
                let fleet = node.fleet.clone();
                world.spawn(node, async move { fleet.close().await });
            }),
            false => (0..6_000).for_each(|_| world.tick()),
        }
        let stats = world.stats();
        let mut outcomes = Outcomes::new();
        let peek = Charge { ask: Ask::Peek(1), ..charge(1, limit, LEASED) };
        let _ = world.memory.take_now(&[peek], &mut outcomes);
        assert_eq!(outcomes[0].used, world.admitted().len() as u64, "the store counts what was used, no more");
        assert_eq!((stats.lease_held, stats.lease_stranded), (0, 0), "{stats:?}");
        assert!(stats.lease_returned > 50, "{stats:?}");
        assert_eq!(stats.lease_granted, stats.lease_spent + stats.lease_returned, "{stats:?}");
    }
}

/// Units that are not spent within the lifetime of a lease are not spent after it.
#[test]
fn a_lease_expires() {
    let config = FleetConfig { lease_ttl: Span::from_millis(200), ..FleetConfig::default() };
    let mut world = World::new(1, config, Span::ZERO, 1);
    let limit = Limit::per_second(10_000).unwrap();
    world.load(Span::from_millis(300), 1_000, |_| charge(1, limit, LEASED));
    let fleet = world.nodes[0].fleet.clone();
    assert!(fleet.stats().lease_held > 20);
    world.clock.advance(Span::from_millis(201)); // no upkeep meanwhile
    let spent = fleet.stats().lease_spent;
    let before = fleet.stats().inner_calls;
    world.ask(&world.nodes[0], charge(1, limit, LEASED));
    assert_eq!(fleet.stats().inner_calls, before + 1, "nothing was left to spend");
    assert_eq!(fleet.stats().lease_spent, spent + 1);
}

/// Keys that are used rarely cost one call each, as with exact sharing, and get no lease.
#[test]
fn cold_keys_pay_no_more_than_exact_ones() {
    let mut world = World::new(1, FleetConfig::default(), Span::ZERO, 1);
    let limit = Limit::per_second(100).unwrap();
    let mut number = 0;
    world.load(Span::from_secs(2), 500, |_| {
        number += 1;
        charge(number % 700, limit, LEASED) // each comes back after more than a second
    });
    let stats = world.stats();
    assert_eq!(stats.inner_calls, world.log.borrow().len() as u64, "{stats:?}");
    assert_eq!((stats.leases, stats.lease_granted), (0, 0));
    assert!(world.log.borrow().iter().all(|event| event.source == Source::Bucket));
}

/// A Zipf load over a thousand keys on four nodes, some of them far beyond their limit, from a cold start.
#[test]
fn a_mixed_load_needs_few_calls() {
    for seed in 1..=SEEDS {
        let mut world = World::new(4, FleetConfig::default(), Span::from_millis(1), seed);
        let mut sum = 0;
        let sums: Vec<u64> = (1..=1_000_u64)
            .map(|rank| {
                sum += (1e6 / (rank as f64).powf(1.1)) as u64;
                sum
            })
            .collect();
        let key = move |draw: &mut Draw| {
            let place = draw.below(sum);
            let number = sums.partition_point(|sum| *sum <= place) as u64;
            let limit = if number % 10 == 1 { Limit::per_second(50) } else { Limit::per_second(5_000) };
            charge(number, limit.unwrap(), LEASED)
        };
        world.load(Span::from_secs(4), 25_000, key);
        let stats = world.stats();
        let log = world.log.borrow();
        let refused = log.iter().filter(|event| !event.allowed).count();
        assert!(refused * 20 > log.len(), "seed {seed}: only {refused} refused");
        let calls = stats.inner_calls as f64 / log.len() as f64;
        println!("seed {seed}: {calls:.3} calls per decision, {refused} of {} refused", log.len());
        assert!(calls <= 0.1, "seed {seed}: {calls} calls per decision");
    }
}

/// While the store is unavailable, only granted units are spent; units of lost answers never are.
#[test]
fn only_confirmed_units_are_spent() {
    for network in [Network::Down, Network::AnswersLost] {
        let mut world = World::new(2, FleetConfig::default(), Span::from_millis(1), 1);
        let limit = window(100_000, Span::from_secs(3_600));
        world.load(Span::from_secs(1), 2_000, |_| charge(1, limit, LEASED));
        let held = world.stats().lease_held;
        let before = world.admitted().len();
        world.link.set(network);
        world.load(Span::from_millis(300), 2_000, |_| charge(1, limit, LEASED));
        let during = world.admitted().len() - before;
        assert!(during as u64 <= held + 8 && during > 0, "{during} admitted by {held} units held");
        world.link.set(Network::Up);
        world.load(Span::from_millis(300), 2_000, |_| charge(1, limit, LEASED));
        assert!(world.admitted().len() - before - during > 1_000, "leases resume");
        let mut outcomes = Outcomes::new();
        let _ = world.memory.take_now(&[Charge { ask: Ask::Peek(1), ..charge(1, limit, LEASED) }], &mut outcomes);
        assert!(outcomes[0].used >= world.admitted().len() as u64, "nothing was spent that was not debited");
    }
}

/// `lease: { tokens: n }` and `{ seconds: s }` bound what a node holds.
#[test]
fn the_rule_bounds_the_batch() {
    for (size, most) in [(LeaseSize::Units(20), 20), (LeaseSize::Millis(10), 20), (LeaseSize::Auto, 400)] {
        let mut world = World::new(1, FleetConfig::default(), Span::ZERO, 1);
        let limit = Limit::per_second(100_000).unwrap();
        let held = most_held(&mut world, 1_000, 2_000, |_| charge(1, limit, Sharing::Leased(size)));
        assert!((most / 2..=most * 3 / 2).contains(&held), "{size:?}: held {held}"); // demand is measured, not known
    }
}
