//! The control plane end to end: the binary, its database, and faults of both.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod away;
mod description;
mod durable;
mod edits;
mod full;
mod gateway;
mod grants;
mod mistakes;
mod plans;
mod propagation;
mod rig;
mod sources;
