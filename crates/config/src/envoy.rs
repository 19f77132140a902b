//! Settings of compatibility with envoyproxy/ratelimit.

use std::path::PathBuf;

/// Settings of compatibility with envoyproxy/ratelimit.
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
    /// Whether its domains deny nothing, whatever their descriptors say.
    pub shadow: bool,
    /// Names of header fields for limit, remaining and reset, in every response of its domains; none if empty.
    pub headers: Vec<String>,
    /// Whether responses of its domains carry domain, descriptors and the metadata of passing limits.
    pub dynamic_metadata: bool,
    /// Whether only descriptors over their limit are counted once any descriptor of a request is.
    pub stop_counting: bool,
    /// Whether calls that cannot be decided are answered with UNKNOWN, as it does.
    pub unknown_errors: bool,
    /// Size of the local cache of refusals, in bytes; 0 for none.
    pub local_cache: usize,
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
            local_cache: 0,
        }
    }
}
