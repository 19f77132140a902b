//! Caps on open connections: in total and per client network.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Counts open connections. Clones share the count.
#[derive(Clone, Debug)]
pub struct ConnectionLimiter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    most_per_address: usize,
    present: AtomicUsize,
    /// Only addresses with open connections, hence at most `most` entries.
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

/// Permission of one connection; returned when dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    limiter: ConnectionLimiter,
    network: Option<IpAddr>,
    address: Option<IpAddr>,
}

/// The cap that a connection exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionRefusal {
    /// `max_connections`.
    Full,
    /// `max_connections_per_address`.
    PerAddress,
}

impl ConnectionRefusal {
    /// The name in metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            ConnectionRefusal::Full => "max_connections",
            ConnectionRefusal::PerAddress => "max_connections_per_address",
        }
    }
}

impl ConnectionLimiter {
    /// At most `most` connections, `most_per_address` from each address.
    pub fn new(most: usize, most_per_address: usize) -> ConnectionLimiter {
        let (present, by_address) = (AtomicUsize::new(0), Mutex::default());
        ConnectionLimiter(Arc::new(Inner { most, most_per_address, present, by_address }))
    }

    /// Admits a connection. One without an address (a Unix socket) counts only towards the total.
    pub fn acquire(&self, address: Option<IpAddr>) -> Result<ConnectionPermit, ConnectionRefusal> {
        let Inner { most, most_per_address, present, by_address } = &*self.0;
        let room = |count: usize| (count < *most).then_some(count + 1);
        present.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).map_err(|_| ConnectionRefusal::Full)?;
        let mut permit = ConnectionPermit { limiter: self.clone(), network: None, address };
        if let Some(network) = address.map(client_network) {
            let mut by_address = by_address.lock();
            let count = by_address.entry(network).or_insert(0);
            if *count >= *most_per_address {
                return Err(ConnectionRefusal::PerAddress); // dropping the permit gives the total back
            }
            *count += 1;
            permit.network = Some(network);
        }
        Ok(permit)
    }

    /// Open connections.
    pub fn count(&self) -> usize {
        self.0.present.load(Ordering::Relaxed)
    }
}

impl ConnectionPermit {
    /// The network that counts as one client; `None` for a Unix domain socket.
    pub fn network(&self) -> Option<IpAddr> {
        self.network
    }

    /// The full address.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let Inner { present, by_address, .. } = &*self.limiter.0;
        present.fetch_sub(1, Ordering::Relaxed);
        if let Some(network) = self.network
            && let Entry::Occupied(mut entry) = by_address.lock().entry(network)
        {
            match entry.get() {
                0 | 1 => drop(entry.remove()),
                _ => *entry.get_mut() -= 1,
            }
        }
    }
}

/// The network that counts as one client: for IPv6 the /64, the smallest network that a client gets.
pub(crate) fn client_network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_the_total_and_each_address_and_forgets_closed_connections() {
        let connections = ConnectionLimiter::new(3, 2);
        let (home, away): (IpAddr, IpAddr) = ("127.0.0.1".parse().unwrap(), "192.0.2.1".parse().unwrap());
        let first = connections.acquire(Some(home)).unwrap();
        let _second = connections.acquire(Some(home)).unwrap();
        assert_eq!(connections.acquire(Some(home)).unwrap_err(), ConnectionRefusal::PerAddress);
        let third = connections.acquire(Some(away)).unwrap();
        assert_eq!(connections.acquire(None).unwrap_err(), ConnectionRefusal::Full);
        assert_eq!(connections.count(), 3);
        drop((first, third));
        assert_eq!(connections.count(), 1);
        let _again = connections.acquire(Some(home)).unwrap();
        assert_eq!(connections.0.by_address.lock().len(), 1, "addresses without connections are not kept");
    }

    #[test]
    fn the_addresses_of_one_ipv6_network_count_as_one() {
        let connections = ConnectionLimiter::new(9, 2);
        let acquire = |address: &str| connections.acquire(Some(address.parse().unwrap()));
        let _some = [acquire("2001:db8::1").unwrap(), acquire("2001:db8::ffff:1").unwrap()];
        assert_eq!(acquire("2001:db8::2").unwrap_err(), ConnectionRefusal::PerAddress);
        assert!(acquire("2001:db8:0:1::1").is_ok(), "the next network is another one");
    }
}
