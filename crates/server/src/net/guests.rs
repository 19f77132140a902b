//! Who is connected: at most so many in all, and so many from one address.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Counts connections. Clones are the same count.
#[derive(Clone, Debug)]
pub struct Guests(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    most_per_address: usize,
    present: AtomicUsize,
    /// Only addresses with connections: as large as `most`, never larger.
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

/// One connection that was let in; leaves by being dropped.
#[derive(Debug)]
pub struct Guest {
    guests: Guests,
    address: Option<IpAddr>,
    whole: Option<IpAddr>,
}

/// Why a connection was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The server is full.
    Full,
    /// The address has as many as it may.
    Crowd,
}

impl Refusal {
    /// The name in metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::Full => "max_connections",
            Refusal::Crowd => "max_connections_per_address",
        }
    }
}

impl Guests {
    /// Room for `most` connections, `most_per_address` from each address.
    pub fn new(most: usize, most_per_address: usize) -> Guests {
        let (present, by_address) = (AtomicUsize::new(0), Mutex::default());
        Guests(Arc::new(Inner { most, most_per_address, present, by_address }))
    }

    /// Lets a connection in. One without an address (a Unix socket) counts only towards the whole.
    pub fn enter(&self, address: Option<IpAddr>) -> Result<Guest, Refusal> {
        let Inner { most, most_per_address, present, by_address } = &*self.0;
        let room = |count: usize| (count < *most).then_some(count + 1);
        present.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).map_err(|_| Refusal::Full)?;
        let mut guest = Guest { guests: self.clone(), address: None, whole: address };
        if let Some(address) = address.map(household) {
            let mut by_address = by_address.lock();
            let count = by_address.entry(address).or_insert(0);
            if *count >= *most_per_address {
                return Err(Refusal::Crowd); // dropping the guest gives its place in the whole back
            }
            *count += 1;
            guest.address = Some(address);
        }
        Ok(guest)
    }

    /// Connections at this moment.
    pub fn present(&self) -> usize {
        self.0.present.load(Ordering::Relaxed)
    }
}

impl Guest {
    /// What counts as its address; `None` for a Unix domain socket.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Its address, all of it.
    pub fn whole_address(&self) -> Option<IpAddr> {
        self.whole
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let Inner { present, by_address, .. } = &*self.guests.0;
        present.fetch_sub(1, Ordering::Relaxed);
        if let Some(address) = self.address
            && let Entry::Occupied(mut entry) = by_address.lock().entry(address)
        {
            match entry.get() {
                0 | 1 => drop(entry.remove()),
                _ => *entry.get_mut() -= 1,
            }
        }
    }
}

/// What counts as one address: of IPv6, the /64 that every household and every rented machine has to itself.
fn household(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_the_whole_and_each_address_and_forgets_who_left() {
        let guests = Guests::new(3, 2);
        let (home, away): (IpAddr, IpAddr) = ("127.0.0.1".parse().unwrap(), "192.0.2.1".parse().unwrap());
        let first = guests.enter(Some(home)).unwrap();
        let _second = guests.enter(Some(home)).unwrap();
        assert_eq!(guests.enter(Some(home)).unwrap_err(), Refusal::Crowd);
        let third = guests.enter(Some(away)).unwrap();
        assert_eq!(guests.enter(None).unwrap_err(), Refusal::Full);
        assert_eq!(guests.present(), 3);
        drop((first, third));
        assert_eq!(guests.present(), 1);
        let _again = guests.enter(Some(home)).unwrap();
        assert_eq!(guests.0.by_address.lock().len(), 1, "addresses without connections are not kept");
    }

    #[test]
    fn a_network_full_of_ipv6_addresses_is_one_address() {
        let guests = Guests::new(9, 2);
        let enter = |address: &str| guests.enter(Some(address.parse().unwrap()));
        let _some = [enter("2001:db8::1").unwrap(), enter("2001:db8::ffff:1").unwrap()];
        assert_eq!(enter("2001:db8::2").unwrap_err(), Refusal::Crowd);
        assert!(enter("2001:db8:0:1::1").is_ok(), "the next network is another one");
    }
}
