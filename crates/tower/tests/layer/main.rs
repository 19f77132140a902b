//! The layer in front of real servers and routers, over an engine in the process.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod bypass;
mod held;
mod passing;
mod sockets;
mod support;
