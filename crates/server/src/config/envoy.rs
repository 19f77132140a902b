//! Rules as envoyproxy/ratelimit keeps them, as it was configured.

use std::path::PathBuf;

/// Settings of what is compatible with envoyproxy/ratelimit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvoySettings {
    /// The directory of its configuration files, loaded as they are.
    pub config: Option<PathBuf>,
    /// Whether several of them may add to one domain.
    pub merge_domains: bool,
}
