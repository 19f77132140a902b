//! Clients, and how a namespace reads what they send.

use std::collections::BTreeMap;

use crate::Instant;

/// What is to be known of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientDraft {
    /// Its tier.
    pub tier: Option<String>,
    /// Its organisation.
    pub organisation: Option<String>,
    /// Whatever else rules match on.
    pub attributes: BTreeMap<String, String>,
}

/// A client as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRecord {
    /// Whose.
    pub namespace: String,
    /// Who: `key:abc`, `user:42`, …
    pub client_key: String,
    /// What is known.
    pub draft: ClientDraft,
    /// When it was made.
    pub created_at: Instant,
    /// When it was changed.
    pub updated_at: Instant,
    /// The generation that changed it last.
    pub version: i64,
}

/// How a namespace reads requests: what stands at the top of a rules file and cannot be said by a single rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceDraft {
    /// How many leading bits of an IPv6 address identify a client.
    pub ipv6_prefix: u8,
    /// Whether `%2F` in paths is kept instead of refused.
    pub keep_escaped_slash: bool,
    /// Permits rules that refuse everything.
    pub allow_block_all: bool,
}

impl Default for NamespaceDraft {
    fn default() -> NamespaceDraft {
        NamespaceDraft { ipv6_prefix: 64, keep_escaped_slash: false, allow_block_all: false }
    }
}
