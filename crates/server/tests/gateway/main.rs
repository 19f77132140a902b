//! The gateway over real sockets: raw bytes from callers, and upstreams that behave as real ones do, well and badly.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod app;
mod costs;
mod forwarding;
mod framing;
mod limits;
mod llm;
mod llm_overrun;
mod model;
mod overload;
mod priorities;
mod refusals;
mod retries;
mod rig;
mod tls;
mod upgrade;
mod upstreams;
