//! Nodes of a fleet: the promises of each kind of sharing, over a simulated network with delays, losses and crashes.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails there has found its bug")]

mod world;

mod async_buckets;
mod deny;
mod leases;
mod mixed;
mod refills;
