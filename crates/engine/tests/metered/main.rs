//! Meters: amounts by name, one reservation for several of them, its extensions and its settlement.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod concurrent;
mod decisions;
mod extensions;
mod model;
mod nodes;
mod oracle;
mod rig;
mod settlements;
