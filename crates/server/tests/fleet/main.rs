//! Nodes that share one Redis, over real sockets: what a fleet promises to those who call it and to those who run it.

#![allow(clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

#[path = "../api/rig.rs"]
#[allow(dead_code, reason = "shared with the suite of one node")]
mod rig;

mod lifting;
mod log;
mod monitoring;
mod node;
mod nodes;
mod penalties;
mod reservations;
mod shared;
mod start;
mod traffic;
mod trouble;
mod webhooks;
