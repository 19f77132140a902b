//! Redis and Valkey servers, started on free ports and stopped with the test.

mod cluster;
mod flavour;
mod sentinels;
mod server;

pub use cluster::RedisCluster;
pub use flavour::Flavour;
pub use sentinels::Sentinels;
pub use server::{RedisOptions, RedisServer};
pub use tollgate_testkit::redis::RedisClient;
