//! Everything of Tollgate that listens.
//!
//! Bytes come in through [`net`], become a call in a transport, are answered by the API, and leave as a
//! [`Reply`]. The transports know framing and nothing about limits; the API knows JSON and nothing about sockets.

pub mod answer;
pub mod config;
pub mod feed;
pub mod http;
pub mod net;
pub mod telemetry;

mod reply;

pub use reply::{Fields, Reply};
