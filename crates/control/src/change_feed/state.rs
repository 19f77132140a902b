//! What following has to say about itself, for readiness, metrics and people.

use crate::Instant;
use crate::control::Quarantined;

/// Where what is in force was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SnapshotOrigin {
    /// Nothing was read yet.
    #[default]
    Nowhere,
    /// The copy on this node's disk: the database did not answer since the start.
    Copy,
    /// The database.
    Database,
}

/// How following stands. Counts only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeFeedState {
    /// Where what is in force was read.
    pub origin: SnapshotOrigin,
    /// The generation of the database that is in force here.
    pub generation: i64,
    /// When the database last said that this is its latest.
    pub fresh_at: Option<Instant>,
    /// Why it does not answer; `None` while it does.
    pub unavailable: Option<String>,
    /// Rows that cannot be used, and why.
    pub quarantined: Vec<Quarantined>,
    /// How often something new came into force.
    pub refreshes: u64,
    /// How often everything was read anew, instead of what changed.
    pub full_loads: u64,
    /// How often the database did not answer.
    pub failures: u64,
}
