//! Ports for servers that must be told theirs, and must find it again after a restart.
//!
//! A port that the system hands out and takes back may be anybody's a moment later. These lie below the range from which
//! connections get theirs, are tried, and are never handed out twice by one process; two processes that draw the same
//! one at the same time notice when the second server does not start.

use std::collections::{BTreeSet, hash_map::RandomState};
use std::hash::BuildHasher;
use std::net::TcpListener;
use std::sync::Mutex;

/// Above what well-known services use, below what Linux gives to connections, and with room for a cluster's bus.
const FIRST: u16 = 10_300;
const COUNT: u16 = 22_000;

static TAKEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A port of this machine that nobody listens on.
pub fn free() -> u16 {
    let mut taken = TAKEN.lock().expect("nobody panics with the list of ports");
    loop {
        let port = FIRST + (RandomState::new().hash_one(0) % u64::from(COUNT)) as u16;
        if !taken.contains(&port) && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            taken.insert(port);
            return port;
        }
    }
}
