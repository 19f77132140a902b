//! Splits the charges of a request by hash slot.
//!
//! A script can access one slot of a cluster. Charges of one identity share a slot and are decided at once; a request
//! that also has charges of other identities, such as a global limit, is decided slot by slot. The narrowest limit
//! comes first: it denies most often, and a denial there costs the shared buckets nothing. In the opposite order, every
//! denied request would be charged to a bucket that others use, and refunded.

use smallvec::SmallVec;
use tollgate_core::Charge;

use super::key::BucketKey;

/// The charges of one slot, by their indexes in the request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) slot: u16,
    pub(crate) places: SmallVec<[usize; 4]>,
}

/// The groups of a request, in the order in which they are decided. Without a cluster there is one slot.
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

/// How many clients share a bucket, estimated by its rate: a limit per client is lower than a limit for all. In 2^-64
/// units per nanosecond, so that ten a year and twenty a year differ.
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
