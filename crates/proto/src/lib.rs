//! Protocol Buffers of Tollgate, generated from `proto/`. Only names, and the codec, are written by hand.

#![allow(missing_docs, clippy::all, clippy::unwrap_used, reason = "generated, from files that are documented")]

mod codec;
mod status;

mod all {
    include!(concat!(env!("OUT_DIR"), "/all.rs"));
}

pub use codec::Codec;
pub use status::STATUS_NAMES;

pub use all::envoy;
pub use all::envoy::config::core::v3::HeaderValue;
pub use all::envoy::extensions::common::ratelimit::v3::{RateLimitDescriptor, rate_limit_descriptor};
/// Envoy's rate limit service, version 3.
pub use all::envoy::service::ratelimit::v3 as rls;
/// Health checking.
pub use all::grpc::health::v1 as health;
/// Tollgate's own service.
pub use all::tollgate::v1;

/// Descriptors of all files, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
