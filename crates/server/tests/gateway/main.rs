//! The gateway over real sockets: raw bytes from callers, and upstreams that behave as real ones do, well and badly.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod addresses;
mod app;
mod bodies;
#[path = "../hostile/caller.rs"]
#[allow(dead_code, reason = "shared with the tests of HTTP")]
mod caller;
mod callers;
mod classes;
mod clients;
#[path = "../api/collector.rs"]
#[allow(dead_code, reason = "shared with the tests of HTTP")]
mod collector;
mod costs;
mod figures;
#[path = "../hostile/flood.rs"]
#[allow(dead_code, reason = "shared with the tests of HTTP")]
mod flood;
mod forwarding;
#[path = "../hostile/frames.rs"]
#[allow(dead_code, reason = "shared with the tests of HTTP")]
mod frames;
mod framing;
mod grpc;
mod guide;
mod health_class;
mod http2_attacks;
mod interim;
mod issuer;
mod key_server;
mod leaky_bucket;
mod limits;
mod listener_tls;
mod llm;
mod llm_breaks;
mod llm_dialects;
mod llm_others;
mod llm_overrun;
mod model;
mod model_forms;
mod overload;
mod priorities;
mod proofs;
mod protection;
mod refusal_fields;
mod refusals;
mod remote_keys;
mod request_fields;
mod retries;
mod rig;
mod rows;
mod scripted;
mod servers;
mod shed_charges;
mod slot_ends;
mod smuggling;
mod spellings;
mod store_away;
mod tls;
mod tls_server;
mod tls_upstream;
mod tokens;
mod traces;
mod uncounted;
mod upgrade;
mod upstream_faults;
mod upstream_tls;
mod upstreams;
mod websocket_frames;
#[path = "../grpc/wire.rs"]
#[allow(dead_code, reason = "shared with the tests of gRPC")]
mod wire;
