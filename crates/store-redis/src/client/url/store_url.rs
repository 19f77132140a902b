//! A parsed URL.

use std::fmt;

use crate::client::address::HostPort;
use crate::client::password::Password;

/// Which servers keep the buckets, and how they form a store. Passwords are not printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl {
    /// How the servers form a store.
    pub layout: Layout,
    /// Whether all connections use TLS.
    pub tls: bool,
    /// Credentials for the servers.
    pub login: Option<Login>,
    /// Credentials for the Sentinels.
    pub sentinel_login: Option<Login>,
    /// The server, the Sentinels, or some nodes of the cluster. Never empty.
    pub hosts: Vec<HostPort>,
    /// The database number.
    pub db: u32,
}

/// How the servers form a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One server.
    Single,
    /// A primary and its replicas, which Sentinels watch under this name.
    Sentinel {
        /// The name of the primary in the Sentinels' configuration.
        master: String,
    },
    /// A cluster: hash slots spread over several primaries.
    Cluster,
}

/// Credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The user; `None` for the default user.
    pub user: Option<String>,
    /// The password.
    pub password: Password,
}

impl StoreUrl {
    /// One server at this address.
    pub fn single(at: HostPort) -> StoreUrl {
        StoreUrl { layout: Layout::Single, tls: false, login: None, sentinel_login: None, hosts: vec![at], db: 0 }
    }

    fn scheme(&self) -> &'static str {
        match (&self.layout, self.tls) {
            (Layout::Single, false) => "redis",
            (Layout::Single, true) => "rediss",
            (Layout::Sentinel { .. }, false) => "redis-sentinel",
            (Layout::Sentinel { .. }, true) => "redis-sentinels",
            (Layout::Cluster, false) => "redis-cluster",
            (Layout::Cluster, true) => "redis-clusters",
        }
    }
}

/// The URL with `…` in place of passwords.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme())?;
        if let Some(Login { user, password }) = &self.login {
            write!(f, "{}:{password}@", user.as_deref().unwrap_or_default())?;
        }
        for (place, host) in self.hosts.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{host}")?;
        }
        match &self.layout {
            Layout::Sentinel { master } if self.db != 0 => write!(f, "/{master}?db={}", self.db),
            Layout::Sentinel { master } => write!(f, "/{master}"),
            _ if self.db != 0 => write!(f, "/{}", self.db),
            _ => Ok(()),
        }
    }
}
