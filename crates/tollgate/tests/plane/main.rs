//! The control plane as people run it: the binary, its database, and what is done to both.

#![expect(clippy::indexing_slicing, reason = "a test that reads out of bounds has found its bug")]

mod away;
mod durable;
mod edits;
mod full;
mod mistakes;
mod propagation;
mod rig;
