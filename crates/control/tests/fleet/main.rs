//! What all nodes of a fleet share beside rules: tokens, the mode, and who was refused.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

#[path = "../databases/mod.rs"]
mod databases;
mod mode;
mod tokens;
mod violations;
