//! Who is at the other end of a connection, as far as the connection itself tells.

use std::net::IpAddr;

/// The other end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// What counts as one address: of IPv6 the /64. `None` for a Unix domain socket, whose other end is this machine.
    pub address: Option<IpAddr>,
    /// The same address, all of it.
    pub whole: Option<IpAddr>,
}
