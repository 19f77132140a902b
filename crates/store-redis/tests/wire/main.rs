//! One primary against real servers, healthy and failing.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod asking;
mod check;
mod clocks;
mod cluster;
mod error_replies;
mod faults;
mod lies;
mod proxy;
mod rig;
mod tls;
mod watch;
