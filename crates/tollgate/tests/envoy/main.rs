//! A real Envoy in front of a backend, which calls the binary by the rate limit service, with the configuration of the
//! guide.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod compat;
mod kubernetes;
mod native;
mod rig;
