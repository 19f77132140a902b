//! Finds the networks that contain an address. Networks are sorted by first address, and each links to the one around
//! it.

use std::collections::HashMap;

use tollgate_rules::address::{Cidr, carried};

use super::{Ids, NONE};

/// Networks in IPv6 space.
#[derive(Debug, Default)]
pub(crate) struct NetworkIndex {
    /// First addresses, stored apart because the binary search reads nothing else.
    firsts: Vec<u128>,
    networks: Vec<Network>,
    /// Patterns that any address matches.
    any: Vec<u32>,
}

#[derive(Debug)]
struct Network {
    cidr: Cidr,
    /// Index of the smallest network around this one.
    around: u32,
    ids: Ids,
}

impl NetworkIndex {
    /// Each network with its pattern; `None` is any address.
    pub(crate) fn new(networks: impl IntoIterator<Item = (Option<Cidr>, u32)>) -> NetworkIndex {
        let mut index = NetworkIndex::default();
        let mut by_network: HashMap<Cidr, Ids> = HashMap::new();
        for (cidr, id) in networks {
            match cidr {
                Some(cidr) => by_network.entry(cidr).or_default().push(id),
                None => index.any.push(id),
            }
        }
        let mut sorted: Vec<(Cidr, Ids)> = by_network.into_iter().collect();
        sorted.sort_unstable_by_key(|(cidr, _)| *cidr);
        let mut open: Vec<(Cidr, u32)> = Vec::new();
        for (at, (cidr, ids)) in sorted.into_iter().enumerate() {
            while open.last().is_some_and(|(around, _)| !around.covers(cidr.addr)) {
                open.pop();
            }
            let around = open.last().map_or(NONE, |(_, at)| *at);
            open.push((cidr, at as u32));
            index.firsts.push(cidr.addr);
            index.networks.push(Network { cidr, around, ids });
        }
        index
    }

    /// Calls `hit` for every network that may contain the address.
    #[inline]
    pub(crate) fn find(&self, bits: u128, hit: &mut impl FnMut(u32)) {
        self.any.iter().for_each(|id| hit(*id));
        self.find_around(bits, hit);
        if let Some(bits) = carried(bits) {
            self.find_around(bits, hit);
        }
    }

    #[inline]
    fn find_around(&self, bits: u128, hit: &mut impl FnMut(u32)) {
        let after = self.firsts.partition_point(|first| *first <= bits);
        let mut next = after.checked_sub(1).and_then(|index| self.networks.get(index));
        while let Some(network) = next {
            if network.cidr.covers(bits) {
                network.ids.iter().for_each(|id| hit(*id));
            }
            next = self.networks.get(network.around as usize);
        }
    }
}
