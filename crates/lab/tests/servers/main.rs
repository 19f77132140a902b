//! The servers and the bad network that tests of the store rely on: a tool that lies is worse than none.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod alone;
mod network;
mod orphans;
mod postgres;
mod together;
