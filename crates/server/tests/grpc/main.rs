//! gRPC over real sockets: every method by a generated client, and what no client of good faith sends, by hand.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod calendars;
#[path = "../hostile/caller.rs"]
#[allow(dead_code, reason = "shared with the tests of HTTP")]
mod caller;
mod calls;
#[path = "../api/collector.rs"]
#[allow(dead_code, reason = "shared with the tests of HTTP")]
mod collector;
mod decision_ids;
#[path = "../hostile/flood.rs"]
mod flood;
mod floods;
#[path = "../hostile/frames.rs"]
#[allow(dead_code, reason = "shared with the tests of HTTP")]
mod frames;
mod health;
mod listeners;
mod messages;
mod meters;
mod methods;
mod raw;
mod reflection;
mod reservations;
mod rig;
mod rls;
mod shared;
mod tokens;
mod traces;
mod wire;
