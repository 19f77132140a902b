//! Sets of limiters that race against each other.

use crate::peers::{FloorTable, Governor, GovernorStd, ShardedMap, Throttlecrab, Tollgate};
use crate::race::LimiterSet;

/// The name of our own store in every table.
pub const TOLLGATE: &str = "Tollgate";
/// The peer of the targets.
pub const GOVERNOR: &str = "governor";
/// The lower bound of any limiter.
pub const FLOOR: &str = "floor: bare fingerprints";
/// The simplest implementation.
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

/// Limiters in the charts of growth.
pub fn growing() -> LimiterSet {
    vec![
        (TOLLGATE, Box::new(Tollgate::new())),
        (GOVERNOR, Box::new(Governor::new())),
        (SHARDED, Box::new(ShardedMap::new())),
        (FLOOR, Box::new(FloorTable::new())),
    ]
}
