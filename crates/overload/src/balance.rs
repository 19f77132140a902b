//! Which server gets a request.
//!
//! By load: the less loaded of two random servers. Requests in flight are load and speed at once: a slow server holds
//! more of them. Comparing two avoids the herd that a search for the least loaded one causes, when several gateways
//! find the same.
//!
//! By key: rendezvous hashing with bounded loads. Each server scores `hash(server, key)`; the best that has room wins. A
//! ring needs hundreds of points per server to be even and sends all keys of a lost server to its neighbours; Maglev
//! rebuilds its table whenever a server is ejected. Rendezvous needs no table, moves only the keys of a server that
//! leaves, and spreads them, at one multiplication per server: an upstream has at most 256.

use crate::chance::{below, mix};

/// A server may have so many hundredths of the mean load.
const BOUND_PERCENT: u64 = 125;

/// A server that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLoad {
    /// Requests in flight.
    pub in_flight: u32,
    /// [`hash_of`](ServerLoad::hash_of) its address: the same at every gateway.
    pub hash: u64,
}

impl ServerLoad {
    /// The hash of an address or a key: FNV-1a, finalised. The same in every process and version.
    pub fn hash_of(bytes: &[u8]) -> u64 {
        let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        mix(bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold))
    }
}

/// The less loaded of two random servers; `server` is `None` for those that must not be used.
pub fn least_loaded(servers: usize, server: impl Fn(usize) -> Option<ServerLoad>, random: u64) -> Option<usize> {
    let usable = (0..servers).filter(|index| server(*index).is_some()).count() as u64;
    let first = below(usable, random);
    // The other one, at any distance around the circle.
    let second = (first + 1 + below(usable.saturating_sub(1), mix(random))).checked_rem(usable)?;
    let mut found = (0..servers).filter_map(|index| Some((index, server(index)?.in_flight)));
    let (near, far) = (first.min(second), first.max(second));
    let near_one = found.nth(near as usize)?;
    if near == far {
        return Some(near_one.0);
    }
    let far_one = found.nth((far - near) as usize - 1).unwrap_or(near_one);
    let (first, second) = if first == near { (near_one, far_one) } else { (far_one, near_one) };
    Some(if second.1 < first.1 { second.0 } else { first.0 })
}

/// The server that a key prefers, among those with less than 1.25 times their share of the requests in flight.
pub fn preferred(servers: usize, server: impl Fn(usize) -> Option<ServerLoad>, key: u64) -> Option<usize> {
    let usable = || (0..servers).filter_map(|index| Some((index, server(index)?)));
    let (count, total) = usable()
        .fold((0u64, 0u64), |(count, total), (_, load)| (count + 1, total.saturating_add(u64::from(load.in_flight))));
    let bound = bounded_load(total, count);
    let with_room = usable().filter(|(_, load)| u64::from(load.in_flight) < bound);
    with_room.max_by_key(|(index, load)| (mix(load.hash ^ key), *index)).map(|(index, _)| index)
}

/// Most requests of a server, the next one included, when `total` are in flight at `count` servers: above the mean of
/// all with the next one, so that one server always has room.
fn bounded_load(total: u64, count: u64) -> u64 {
    let with_next = total.saturating_add(1).saturating_mul(BOUND_PERCENT);
    with_next.div_ceil(count.max(1).saturating_mul(100))
}

#[cfg(test)]
mod tests;
