//! The fields that race: who stands beside whom.

use crate::peers::{Floor, Governor, GovernorStd, Sharded, Throttlecrab, Tollgate};
use crate::race::Field;

/// The name of our own store in every table.
pub const TOLLGATE: &str = "Tollgate";
/// The peer that the targets speak of.
pub const GOVERNOR: &str = "governor";
/// What no limiter goes below.
pub const FLOOR: &str = "floor: bare fingerprints";
/// What one writes in an afternoon.
pub const SHARDED: &str = "sharded map of strings";

/// All stores.
pub fn stores() -> Field {
    vec![
        (TOLLGATE, Box::new(Tollgate::new())),
        (GOVERNOR, Box::new(Governor::new())),
        ("governor on Instant", Box::new(GovernorStd::new())),
        ("throttlecrab", Box::new(Throttlecrab::new())),
        (SHARDED, Box::new(Sharded::new())),
        (FLOOR, Box::new(Floor::new())),
    ]
}

/// Those whose growth is worth a line.
pub fn growing() -> Field {
    vec![
        (TOLLGATE, Box::new(Tollgate::new())),
        (GOVERNOR, Box::new(Governor::new())),
        (SHARDED, Box::new(Sharded::new())),
        (FLOOR, Box::new(Floor::new())),
    ]
}
