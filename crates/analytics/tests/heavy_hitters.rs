//! The bounds of Space-Saving, for random weights against exact counts.

use std::collections::HashMap;

use proptest::prelude::*;
use tollgate_analytics::{CloseClient, HeavyHitters, LimitedClient, RuleClients, SpaceSaving, sum_of_nodes};
use tollgate_core::Time;

/// Adds everything, and counts it exactly beside.
fn summarize(stream: &[(u64, u64)], capacity: usize) -> (SpaceSaving<()>, HashMap<u64, u64>) {
    let (mut summary, mut exact) = (SpaceSaving::new(capacity), HashMap::new());
    for (key, weight) in stream {
        summary.add(*key, &format!("k{key}"), *weight);
        *exact.entry(*key).or_default() += weight;
    }
    (summary, exact)
}

/// What is promised of a summary.
fn check(found: &HeavyHitters, exact: &HashMap<u64, u64>) -> Result<(), TestCaseError> {
    let listed: HashMap<u64, (u64, u64)> =
        found.hitters().iter().map(|own| (own.key, (own.count, own.error))).collect();
    prop_assert_eq!(found.total(), exact.values().sum::<u64>());
    for (key, weight) in exact {
        match listed.get(key) {
            Some((count, error)) => {
                prop_assert!(count >= weight, "{} is counted {} and weighs {}", key, count, weight);
                prop_assert!(count - error <= *weight, "{} weighs {}, at least {}", key, weight, count - error);
            }
            None => prop_assert!(*weight <= found.floor(), "{} weighs {}, above {}", key, weight, found.floor()),
        }
    }
    for own in found.hitters() {
        prop_assert_eq!(&own.name, &format!("k{}", own.key));
        prop_assert!(exact.contains_key(&own.key));
    }
    Ok(())
}

fn streams() -> impl Strategy<Value = Vec<(u64, u64)>> {
    // Few heavy keys and many light ones.
    let key = prop_oneof![3 => 0_u64..4, 1 => 0_u64..500];
    proptest::collection::vec((key, 1_u64..20), 0..600)
}

proptest! {
    #[test]
    fn counts_are_within_their_errors(stream in streams(), capacity in 1_usize..40) {
        let (summary, exact) = summarize(&stream, capacity);
        let found = summary.heavy_hitters();
        check(&found, &exact)?;
        prop_assert!(found.floor() * capacity as u64 <= found.total(), "the error is at most n/k");
        prop_assert!(found.hitters().iter().all(|own| own.error * capacity as u64 <= found.total()));
        prop_assert!(summary.len() <= capacity);
    }

    #[test]
    fn sums_of_summaries_keep_the_bounds(a in streams(), b in streams(), capacity in 1_usize..40, most in 0_usize..20) {
        let ((a, exact), (b, other)) = (summarize(&a, capacity), summarize(&b, capacity));
        let mut both = exact;
        other.into_iter().for_each(|(key, weight)| *both.entry(key).or_default() += weight);
        let sum = a.heavy_hitters().plus(&b.heavy_hitters());
        check(&sum, &both)?;
        check(&sum.cut(most), &both)?;
    }
}

proptest! {
    /// A fleet: each node summarizes its own stream with `k` counters, and one node adds them up.
    #[test]
    fn rankings_of_a_fleet_keep_the_bounds(
        nodes in proptest::collection::vec(streams(), 1..6),
        capacity in 1_usize..40,
        most in proptest::option::of(0_usize..20),
    ) {
        let (mut exact, mut parts) = (HashMap::new(), Vec::new());
        for stream in &nodes {
            let (summary, own) = summarize(stream, capacity);
            own.into_iter().for_each(|(key, weight)| *exact.entry(key).or_default() += weight);
            let mut clients = RuleClients { hitters: summary.heavy_hitters(), ..RuleClients::default() };
            most.into_iter().for_each(|most| clients.cut(most));
            parts.push(clients);
        }
        let sum = sum_of_nodes(parts);
        prop_assert_eq!(sum.len(), 1);
        let found = &sum[0].hitters;
        check(found, &exact)?;
        if most.is_none() {
            prop_assert!(found.floor() * capacity as u64 <= found.total(), "the sum of n/k of the nodes");
            prop_assert!(found.hitters().iter().all(|own| own.error * capacity as u64 <= found.total()));
        }
    }
}

#[test]
fn what_two_nodes_know_of_a_client_is_joined() {
    let at = Time::from_secs;
    let limited =
        |since, last, used| LimitedClient { since: at(since), last: at(last), used, ..LimitedClient::default() };
    let (a, b) = (limited(100, 200, 5), limited(150, 230, 7));
    assert_eq!((a.joined(b), b.joined(a)), (limited(100, 230, 7), limited(100, 230, 7)), "one time of being limited");
    let later = limited(300, 310, 9);
    assert_eq!(a.joined(later), later, "more than a minute apart: since the later one");
    let close = |key, used, seen| CloseClient { key, used, limit: 10, at: at(seen), ..CloseClient::default() };
    let rule = |close: Vec<CloseClient>, since| RuleClients { close, since: at(since), ..RuleClients::default() };
    let sum = sum_of_nodes([
        rule(vec![close(1, 6, 20), close(2, 8, 5)], 600),
        rule(vec![close(1, 5, 10), close(2, 9, 9)], 300),
    ]);
    assert_eq!(sum[0].close, [close(1, 6, 20), close(2, 9, 9)], "a bucket is shared: its latest usage, not the sum");
    assert_eq!(sum[0].since, at(300));
}

#[test]
fn one_attacker_is_found_among_a_million_random_keys() {
    let mut summary: SpaceSaving<()> = SpaceSaving::new(64);
    for round in 0..1_000_000_u64 {
        summary.add(round.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, "noise", 1);
        if round % 20 == 0 {
            summary.add(2, "attacker", 1);
        }
    }
    let found = summary.heavy_hitters();
    let attacker = found.hitters().iter().find(|own| own.name == "attacker").expect("it weighs more than n/k");
    assert!(attacker.count >= 50_000 && attacker.count - attacker.error <= 50_000, "{attacker:?}");
}
