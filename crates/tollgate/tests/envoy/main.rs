//! A real Envoy in front of a service, asking the binary by Envoy's rate limit service, with the configuration that the
//! guide shows.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod compat;
mod house;
mod native;
