//! Real servers for tests, started on free ports and gone with the test.

mod client;
mod cluster;
mod flavour;
mod sentinels;
mod server;

pub use client::Client;
pub use cluster::Cluster;
pub use flavour::Flavour;
pub use sentinels::Sentinels;
pub use server::{Plan, Server};
