//! The servers and the fault proxy that other tests rely on do what they promise.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod alone;
mod network;
mod orphans;
mod postgres;
mod together;
