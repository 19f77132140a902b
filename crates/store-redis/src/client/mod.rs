//! A client for Redis and Valkey: addresses, topology, connections, TLS, circuit breaker, clock.
//!
//! It knows neither Lua nor buckets, and imports nothing from `store`.

pub(crate) mod address;
pub(crate) mod backoff;
pub mod breaker;
pub mod clock;
pub(crate) mod config;
pub(crate) mod connection;
pub(crate) mod context;
pub mod failure;
pub(crate) mod info;
pub(crate) mod lineage;
pub(crate) mod nodes;
pub(crate) mod password;
pub(crate) mod queue;
pub(crate) mod slot;
pub(crate) mod timer_lag;
mod tls;
pub(crate) mod topology;
pub mod url;
