//! RESP over real sockets: what clients of Redis expect, and what no client may do.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod allocations;
mod clients;
mod commands;
mod framing;
mod hostile;
mod rig;
mod rules;
mod throttles;
mod transactions;
mod transports;
mod vectors;
