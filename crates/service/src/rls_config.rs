//! How the domains of envoyproxy/ratelimit are answered.

/// How domains of envoyproxy/ratelimit's files are answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RlsConfig {
    /// From this percentage of a limit on, hits count as near it.
    pub near_percent: u64,
    /// Deny nothing, whatever the descriptors say.
    pub shadow: bool,
    /// Names of the header fields for limit, remaining and reset.
    pub headers: Option<[String; 3]>,
    /// Answer with dynamic metadata.
    pub metadata: bool,
    /// Count only what is over its limit once any descriptor is.
    pub stops_counting: bool,
    /// Answer calls that cannot be decided with UNKNOWN.
    pub unknown_errors: bool,
    /// Size of the local cache of refusals, in bytes; 0 for none.
    pub local_cache_bytes: usize,
}

impl Default for RlsConfig {
    fn default() -> RlsConfig {
        RlsConfig {
            near_percent: 80,
            shadow: false,
            headers: None,
            metadata: false,
            stops_counting: false,
            unknown_errors: false,
            local_cache_bytes: 0,
        }
    }
}
