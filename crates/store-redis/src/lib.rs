//! Buckets in Redis or Valkey, shared by all nodes of a fleet.

mod address;
pub mod breaker;
pub mod check;
mod config;
mod connection;
pub mod estimate;
pub mod failure;
mod info;
pub mod key;
mod lot;
mod password;
pub mod primary;
mod probe;
pub mod resp;
pub mod script;
mod shared;
pub mod stats;
mod tls;
pub mod url;

pub use address::HostPort;
pub use check::{Finding, check};
pub use config::RedisConfig;
pub use failure::{Failure, Redirect, Refusal};
pub use password::Password;
pub use primary::{Health, Primary};
pub use shared::Shared;
pub use stats::PrimaryStats;
pub use url::{Layout, Login, StoreUrl};
