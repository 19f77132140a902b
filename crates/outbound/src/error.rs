//! Why a message did not arrive.

use std::fmt;
use std::io;
use std::net::IpAddr;

/// Why a message did not arrive. Texts name no secret: neither the path of the URL nor the body is in them.
#[derive(Debug)]
pub enum OutboundError {
    /// The host has an address that must not be called.
    ForbiddenAddress(IpAddr),
    /// The URL has no TLS, which only private networks may do without.
    NoTls,
    /// The host could not be resolved.
    Unresolved(io::Error),
    /// No connection, or no TLS session.
    Unreachable(io::Error),
    /// The peer broke HTTP, or the connection ended.
    Protocol(String),
    /// It took too long.
    TimedOut,
}

impl fmt::Display for OutboundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutboundError::ForbiddenAddress(address) => {
                write!(f, "the host resolves to {address}, which is no public address")
            }
            OutboundError::NoTls => f.write_str("the URL is not https"),
            OutboundError::Unresolved(error) => write!(f, "the host cannot be resolved: {error}"),
            OutboundError::Unreachable(error) => write!(f, "no connection: {error}"),
            OutboundError::Protocol(error) => write!(f, "no HTTP response: {error}"),
            OutboundError::TimedOut => f.write_str("no response in time"),
        }
    }
}

impl std::error::Error for OutboundError {}
