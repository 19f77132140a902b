//! What the nodes of a fleet share besides rules: tokens, the mode, violations.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

#[path = "../databases/mod.rs"]
mod databases;
mod mode;
mod tokens;
mod violations;
