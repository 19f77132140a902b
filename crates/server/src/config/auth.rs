//! Forward-auth, as it was configured.

/// Settings of `/v1/auth`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthSettings {
    /// How many proxies in front of this server are trusted to add to X-Forwarded-For.
    pub trusted_hops: usize,
}
