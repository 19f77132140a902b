//! Rules as envoyproxy/ratelimit keeps them, as it was configured.

use std::path::PathBuf;

/// Settings of what is compatible with envoyproxy/ratelimit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvoySettings {
    /// The directory of its configuration files, loaded as they are.
    pub config: Option<PathBuf>,
    /// Whether several files may be about one domain.
    pub merge_domains: bool,
    /// From how many percent of a limit on hits count as near it.
    pub near_limit: usize,
    /// Whether its domains refuse nobody, whatever their descriptors say.
    pub shadow: bool,
    /// Names of header fields for limit, remaining and reset, told with every answer of its domains; none if empty.
    pub headers: Vec<String>,
}

impl Default for EnvoySettings {
    fn default() -> Self {
        Self { config: None, merge_domains: false, near_limit: 80, shadow: false, headers: Vec::new() }
    }
}
