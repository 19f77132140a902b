//! The address of a connection's other end.

use std::net::IpAddr;

/// The other end of a connection, as the socket reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// The address that counts as one client: for IPv6 the /64. `None` for a Unix domain socket.
    pub address: Option<IpAddr>,
    /// The full address.
    pub whole: Option<IpAddr>,
}
