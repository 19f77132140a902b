//! One primary against real servers, healthy and failing.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod asking;
mod check;
mod clocks;
mod cluster;
mod faults;
mod house;
mod proxy;
mod refusals;
mod tls;
mod watch;
