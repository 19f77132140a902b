//! Redis and Valkey servers, started on free ports and stopped with the test.

mod cluster;
mod flavour;
mod sentinels;
mod server;

pub use cluster::Cluster;
pub use flavour::Flavour;
pub use sentinels::Sentinels;
pub use server::{Plan, Server};
pub use tollgate_testkit::redis::Client;
