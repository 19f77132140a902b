//! The address of a server.

use std::fmt;

/// A host, by name or address, and its port.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPort {
    /// A name, an IPv4 address, or an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl HostPort {
    /// An address.
    pub fn new(host: impl Into<String>, port: u16) -> HostPort {
        HostPort { host: host.into(), port }
    }

    /// Parses `host:port` as servers write it in redirections: an IPv6 address may come without brackets, and an empty
    /// host means the server that sent the redirection.
    pub fn from_redirect(text: &str, answered: &str) -> Option<HostPort> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = if host.is_empty() || host == "?" { answered } else { host };
        Some(HostPort::new(host, port.parse().ok().filter(|port| *port != 0)?))
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HostPort { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_name_a_host_or_mean_the_one_that_answered() {
        let read = |text| HostPort::from_redirect(text, "10.0.0.7").map(|at| at.to_string());
        assert_eq!(read("127.0.0.1:6381").as_deref(), Some("127.0.0.1:6381"));
        assert_eq!(read(":6381").as_deref(), Some("10.0.0.7:6381"));
        assert_eq!(read("?:6381").as_deref(), Some("10.0.0.7:6381"));
        assert_eq!(read("::1:6381").as_deref(), Some("[::1]:6381"));
        assert_eq!(read("redis-1.example:6381").as_deref(), Some("redis-1.example:6381"));
        for bad in ["", "host", "host:", "host:0", "host:99999", "host:x"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
