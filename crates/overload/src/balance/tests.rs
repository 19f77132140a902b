//! Choices of servers, by examples and by properties.

use proptest::prelude::*;

use super::*;

fn loads(in_flight: &[u32]) -> Vec<ServerLoad> {
    let load = |(index, in_flight): (usize, &u32)| {
        let hash = ServerLoad::hash_of(format!("10.0.0.{index}:3000").as_bytes());
        ServerLoad { in_flight: *in_flight, hash }
    };
    in_flight.iter().enumerate().map(load).collect()
}

fn at(loads: &[ServerLoad]) -> impl Fn(usize) -> Option<ServerLoad> {
    |index| loads.get(index).copied()
}

#[test]
fn the_less_loaded_of_two_is_chosen() {
    let loads = loads(&[5, 1]);
    for random in (0..100).map(mix) {
        assert_eq!(least_loaded(2, at(&loads), random), Some(1));
    }
}

#[test]
fn equal_servers_are_chosen_equally_and_the_most_loaded_never() {
    let equal = loads(&[2; 5]);
    let mut counts = [0u32; 5];
    (0..10_000).for_each(|random| counts[least_loaded(5, at(&equal), mix(random)).unwrap()] += 1);
    assert!(counts.iter().all(|count| (1_850..2_150).contains(count)), "{counts:?}");
    let one_busy = loads(&[2, 2, 9, 2, 2]);
    assert!((0..10_000).all(|random| least_loaded(5, at(&one_busy), mix(random)) != Some(2)));
}

#[test]
fn servers_that_must_not_be_used_are_not() {
    let loads = loads(&[0, 9, 0]);
    let only = |index: usize| at(&loads)(index).filter(|_| index == 1);
    assert_eq!(least_loaded(3, only, 7), Some(1));
    assert_eq!(preferred(3, only, 7), Some(1));
    assert_eq!(least_loaded(3, |_| None, 7), None);
    assert_eq!(preferred(3, |_| None, 7), None);
    assert_eq!(least_loaded(0, |_| None, 7), None);
}

#[test]
fn a_lost_server_moves_its_own_keys_only_and_to_all_others() {
    let loads = loads(&[0; 5]);
    let without = |index: usize| at(&loads)(index).filter(|_| index != 2);
    let mut moved = [0u32; 5];
    for key in (0..10_000).map(mix) {
        let before = preferred(5, at(&loads), key).unwrap();
        let after = preferred(5, without, key).unwrap();
        assert!(before == after || before == 2);
        moved[after] += u32::from(before == 2);
    }
    assert_eq!(moved[2], 0);
    assert!([0, 1, 3, 4].into_iter().all(|index| (400..600).contains(&moved[index])), "{moved:?}");
}

#[test]
fn keys_are_spread_evenly() {
    let loads = loads(&[0; 10]);
    let mut counts = [0u32; 10];
    for key in 0..20_000u64 {
        let key = ServerLoad::hash_of(format!("user:{key}").as_bytes());
        counts[preferred(10, at(&loads), key).unwrap()] += 1;
    }
    assert!(counts.iter().all(|count| (1_800..2_200).contains(count)), "{counts:?}");
}

#[test]
fn the_hash_is_the_same_in_every_version() {
    assert_eq!(ServerLoad::hash_of(b"10.0.0.7:3000"), 10_107_982_064_670_687_960);
}

proptest! {
    #[test]
    fn loads_stay_bounded_for_any_keys(
        keys in prop::collection::vec(0u64..4, 1..600),
        servers in 1usize..20,
    ) {
        let mut loads = loads(&vec![0; servers]);
        for (number, key) in keys.into_iter().enumerate() {
            let chosen = preferred(servers, at(&loads), mix(key)).expect("one has room");
            loads[chosen].in_flight += 1;
            let most = bounded_load(number as u64, servers as u64);
            prop_assert!(u64::from(loads[chosen].in_flight) <= most);
        }
    }

    #[test]
    fn both_choices_are_servers_that_may_be_used(
        in_flight in prop::collection::vec(prop::option::of(any::<u32>()), 0..20),
        random: u64,
    ) {
        let server = |index: usize| {
            let in_flight = *in_flight.get(index)?;
            Some(ServerLoad { in_flight: in_flight?, hash: mix(index as u64) })
        };
        for chosen in [least_loaded(in_flight.len(), server, random), preferred(in_flight.len(), server, random)] {
            prop_assert_eq!(chosen.is_some(), in_flight.iter().any(Option::is_some));
            prop_assert!(chosen.is_none_or(|index| in_flight[index].is_some()));
        }
    }
}
