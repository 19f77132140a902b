//! Real servers for tests, started on free ports and gone with the test.

mod client;
mod server;

pub use client::Client;
pub use server::Server;
