//! Which charges of a request can be decided together.
//!
//! A script sees one slot of a cluster. Charges of one identity share theirs and are decided at once; a request that
//! also meets a rule for drain_all is asked slot by slot. The narrowest comes first: it refuses most, and a refusal
//! there costs the shared buckets nothing, while the other way round every refused request would be charged to a bucket
//! that others use, and refunded.

use smallvec::SmallVec;
use tollgate_core::Charge;

use super::key::BucketKey;

/// The charges of one slot, by their places in the request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) slot: u16,
    pub(crate) places: SmallVec<[usize; 4]>,
}

/// The groups of a request, in the order in which they are asked. A store that is not split has one slot.
pub(crate) fn groups(charges: &[Charge], split: bool) -> SmallVec<[Group; 2]> {
    let mut groups: SmallVec<[Group; 2]> = SmallVec::new();
    for (place, charge) in charges.iter().enumerate() {
        let slot = if split { BucketKey::of(charge).slot() } else { 0 };
        match groups.iter_mut().find(|group| group.slot == slot) {
            Some(group) => group.places.push(place),
            None => groups.push(Group { slot, places: SmallVec::from_slice(&[place]) }),
        }
    }
    if groups.len() > 1 {
        groups.sort_by_key(|group| group.places.iter().filter_map(|place| charges.get(*place)).map(width).min());
    }
    groups
}

/// How many callers share a bucket, judged by its rate: nobody gives one user the rate of all. In 2^-64 units per
/// nanosecond, so that ten a year and twenty a year differ.
fn width(charge: &Charge) -> u128 {
    (u128::from(charge.limit.requests()) << 64) / u128::from(charge.limit.window().nanos().max(1))
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Digest, Limit};

    use super::*;

    fn charge(identity: u32, requests: u64) -> Charge {
        let bucket = Digest([u64::from(identity), requests]);
        Charge { identity, ..Charge::new(bucket, Limit::per_second(requests).unwrap(), 1) }
    }

    #[test]
    fn one_identity_is_one_group_and_the_narrowest_comes_first() {
        let charges = [charge(1, 100_000), charge(2, 1_000), charge(3, 10), charge(2, 5_000)];
        let places: Vec<Vec<usize>> = groups(&charges, true).iter().map(|group| group.places.to_vec()).collect();
        assert_eq!(places, [vec![2], vec![1, 3], vec![0]]);
    }

    #[test]
    fn a_store_that_is_not_split_decides_all_at_once() {
        let charges = [charge(1, 100_000), charge(3, 10)];
        assert_eq!(groups(&charges, false).len(), 1);
        assert!(groups(&[], true).is_empty());
    }
}
