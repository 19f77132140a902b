//! The fields that race: who stands beside whom.

use crate::peers::{FloorTable, Governor, GovernorStd, ShardedMap, Throttlecrab, Tollgate};
use crate::race::LimiterSet;

/// The name of our own store in every table.
pub const TOLLGATE: &str = "Tollgate";
/// The peer that the targets speak of.
pub const GOVERNOR: &str = "governor";
/// What no limiter goes below.
pub const FLOOR: &str = "floor: bare fingerprints";
/// What one writes in an afternoon.
pub const SHARDED: &str = "sharded map of strings";

/// All stores.
pub fn stores() -> LimiterSet {
    vec![
        (TOLLGATE, Box::new(Tollgate::new())),
        (GOVERNOR, Box::new(Governor::new())),
        ("governor on Instant", Box::new(GovernorStd::new())),
        ("throttlecrab", Box::new(Throttlecrab::new())),
        (SHARDED, Box::new(ShardedMap::new())),
        (FLOOR, Box::new(FloorTable::new())),
    ]
}

/// Those whose growth is worth a line.
pub fn growing() -> LimiterSet {
    vec![
        (TOLLGATE, Box::new(Tollgate::new())),
        (GOVERNOR, Box::new(Governor::new())),
        (SHARDED, Box::new(ShardedMap::new())),
        (FLOOR, Box::new(FloorTable::new())),
    ]
}
