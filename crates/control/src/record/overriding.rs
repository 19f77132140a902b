//! Overrides: other numbers of one rule for one client, for a time.

use crate::Instant;

/// What an override shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideDraft {
    /// Whom it is for.
    pub client_key: String,
    /// Which rule it changes, of the same namespace.
    pub rule_id: String,
    /// Units per window instead of the rule's.
    pub max_requests: Option<i64>,
    /// Capacity instead of the rule's; 0 as if it were not there.
    pub burst_size: i64,
    /// Exempts the client.
    pub unlimited: bool,
    /// First instant it holds; from the beginning if none.
    pub valid_from: Option<Instant>,
    /// First instant it holds no more.
    pub valid_until: Instant,
    /// For people.
    pub reason: String,
}

/// An override as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideRecord {
    /// Whose.
    pub namespace: String,
    /// Its id.
    pub override_id: String,
    /// What it is.
    pub draft: OverrideDraft,
    /// When it was made.
    pub created_at: Instant,
    /// When it was changed.
    pub updated_at: Instant,
    /// The generation that changed it last.
    pub version: i64,
}
