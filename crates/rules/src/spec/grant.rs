//! Units that a client gets once.

use crate::position::SourcePosition;

/// Units added once to the quota of one rule for one client. They count in the period that contains the start, until
/// that period or the grant ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantSpec {
    /// The client.
    pub client_key: String,
    /// Its position in the file.
    pub at: SourcePosition,
    /// Name of the rule.
    pub rule: String,
    /// The units.
    pub amount: u64,
    /// First instant at which it counts, in nanoseconds since 1970.
    pub valid_from_ns: u64,
    /// First instant at which it no longer counts, if it ends before its period.
    pub valid_until_ns: Option<u64>,
    /// Free text.
    pub reason: Option<String>,
}
