//! The protocol buffers that Tollgate speaks, as Rust. Generated from `proto/`; nothing is written here by hand but names,
//! and whose fault it is when a message cannot be read.

#![allow(missing_docs, clippy::all, clippy::unwrap_used, reason = "generated, from files that are documented")]

mod codec;

mod all {
    include!(concat!(env!("OUT_DIR"), "/all.rs"));
}

pub use codec::Codec;

pub use all::envoy;
pub use all::envoy::config::core::v3::HeaderValue;
pub use all::envoy::extensions::common::ratelimit::v3::{RateLimitDescriptor, rate_limit_descriptor};
/// Envoy's rate limit service, version 3.
pub use all::envoy::service::ratelimit::v3 as rls;
/// Health checking.
pub use all::grpc::health::v1 as health;
/// Tollgate's own service.
pub use all::tollgate::v1;

/// All files described, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
