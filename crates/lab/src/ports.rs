//! Ports for servers that need a fixed one, also after a restart.
//!
//! Port 0 would not do: another process may get the port between two starts. These ports lie below the ephemeral range,
//! are tried, and are never handed out twice by one process; two processes that draw the same one at the same time notice
//! when the second server does not start.

use std::collections::{BTreeSet, hash_map::RandomState};
use std::hash::BuildHasher;
use std::net::TcpListener;
use std::sync::Mutex;

/// Above well-known services, below Linux's ephemeral ports, and with room for a cluster's bus.
const FIRST: u16 = 10_300;
const COUNT: u16 = 22_000;

static TAKEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A port of this machine without a listener.
pub fn free() -> u16 {
    let mut taken = TAKEN.lock().expect("not poisoned");
    loop {
        let port = FIRST + (RandomState::new().hash_one(0) % u64::from(COUNT)) as u16;
        if !taken.contains(&port) && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            taken.insert(port);
            return port;
        }
    }
}
