//! Rules as envoyproxy/ratelimit keeps them, as it was configured.

use std::path::PathBuf;

/// Settings of what is compatible with envoyproxy/ratelimit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvoySettings {
    /// The directory of its configuration files, loaded as they are.
    pub config: Option<PathBuf>,
    /// Whether several files may be about one domain.
    pub merge_domains: bool,
    /// Whether a file may lose more than half of its limits while it is followed.
    pub allow_shrink: bool,
    /// From how many percent of a limit on hits count as near it.
    pub near_limit: usize,
    /// Whether its domains refuse nobody, whatever their descriptors say.
    pub shadow: bool,
    /// Names of header fields for limit, remaining and reset, told with every answer of its domains; none if empty.
    pub headers: Vec<String>,
    /// Whether answers of its domains tell domain, descriptors and the metadata of passing limits.
    pub dynamic_metadata: bool,
    /// Whether nothing but what is over its limit is counted once any descriptor of a request is over its own.
    pub stop_counting: bool,
    /// Whether calls that cannot be decided are answered with the code that it has for them.
    pub unknown_errors: bool,
}

impl Default for EnvoySettings {
    fn default() -> Self {
        Self {
            config: None,
            merge_domains: false,
            allow_shrink: false,
            near_limit: 80,
            shadow: false,
            headers: Vec::new(),
            dynamic_metadata: false,
            stop_counting: false,
            unknown_errors: false,
        }
    }
}
