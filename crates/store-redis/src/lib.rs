//! Buckets in Redis or Valkey, shared by all nodes of a fleet.

mod address;
pub mod breaker;
mod budget;
mod config;
mod connection;
pub mod estimate;
pub mod failure;
mod figures;
mod group;
mod info;
pub mod key;
mod lot;
mod password;
pub mod primary;
mod probe;
pub mod resp;
pub mod script;
mod service;
mod shared;
pub mod stats;
mod store;
mod tls;
mod topology;
pub mod url;

pub use address::HostPort;
pub use config::RedisConfig;
pub use failure::{Failure, Redirect, Refusal};
pub use figures::SlotFigures;
pub use password::Password;
pub use primary::{Health, Primary};
pub use service::{RedisStats, StartError};
pub use shared::Shared;
pub use stats::PrimaryStats;
pub use store::RedisStore;
pub use url::{Layout, Login, StoreUrl};
