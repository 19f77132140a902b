//! The data API over real sockets: what people who have read the guide expect of it.

#![allow(clippy::indexing_slicing, reason = "a test that cannot go on may panic")]

mod away;
mod calendars;
mod checks;
mod collector;
mod envoy;
mod envoy_domains;
mod forward_auth;
mod meters;
mod operators;
mod otlp;
mod receipts;
#[allow(dead_code, reason = "shared with the suite of a fleet")]
mod rig;
mod surfaces;
mod usage;
