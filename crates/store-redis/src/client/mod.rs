//! A client of Redis and Valkey: how servers are found, reached, trusted and given up.

pub(crate) mod address;
pub(crate) mod backoff;
pub mod breaker;
pub mod clock;
pub(crate) mod config;
pub(crate) mod connection;
pub(crate) mod context;
pub mod failure;
pub(crate) mod gate;
pub(crate) mod info;
pub(crate) mod nodes;
pub(crate) mod pace;
pub(crate) mod password;
pub(crate) mod pending;
mod tls;
pub(crate) mod topology;
pub mod url;
