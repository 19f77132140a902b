//! The gateway over real sockets: raw bytes from callers, and upstreams that behave as real ones do, well and badly.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod app;
#[path = "../hostile/caller.rs"]
#[allow(dead_code, reason = "shared with the tests of HTTP")]
mod caller;
mod classes;
mod clients;
mod costs;
#[path = "../hostile/flood.rs"]
#[allow(dead_code, reason = "shared with the tests of HTTP")]
mod flood;
mod forwarding;
#[path = "../hostile/frames.rs"]
#[allow(dead_code, reason = "shared with the tests of HTTP")]
mod frames;
mod framing;
mod grpc;
mod http2_attacks;
mod leaky_bucket;
mod limits;
mod llm;
mod llm_dialects;
mod llm_overrun;
mod model;
mod model_forms;
mod overload;
mod priorities;
mod protection;
mod refusals;
mod retries;
mod rig;
mod scripted;
mod servers;
mod slot_ends;
mod smuggling;
mod spellings;
mod tls;
mod upgrade;
mod upstream_faults;
mod upstreams;
mod websocket_frames;
#[path = "../grpc/wire.rs"]
#[allow(dead_code, reason = "shared with the tests of gRPC")]
mod wire;
