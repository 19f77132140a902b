//! The state of the feed, for readiness, metrics and the admin API.

use crate::Instant;
use crate::control::Quarantined;

/// Where the active state was read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SnapshotOrigin {
    /// Nothing was read yet.
    #[default]
    Nowhere,
    /// The copy on this node's disk: the database has not answered since the start.
    Copy,
    /// The database.
    Database,
}

/// The state of the feed. Counters only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeFeedState {
    /// Where the active state was read from.
    pub origin: SnapshotOrigin,
    /// The active generation.
    pub generation: i64,
    /// When the database last confirmed that this is its latest generation.
    pub fresh_at: Option<Instant>,
    /// Why the database cannot be read; `None` while it can.
    pub unavailable: Option<String>,
    /// Rows that cannot be used, with the reasons.
    pub quarantined: Vec<Quarantined>,
    /// Number of activations.
    pub refreshes: u64,
    /// Number of activations after everything was loaded again.
    pub full_loads: u64,
    /// Number of failed reads.
    pub failures: u64,
}
