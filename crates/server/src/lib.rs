//! Everything of Tollgate that listens.
//!
//! Bytes come in through [`net`], become a head and a body in [`http`], are answered by the [`api`], and leave as a
//! [`Reply`]. The transports know framing and nothing about limits; the API knows JSON and nothing about sockets.

pub mod admin;
pub mod answer;
pub mod api;
pub mod backend;
mod caught;
pub mod config;
pub mod door;
pub mod envoy_rls;
pub mod explain;
pub mod feed;
pub mod forward_auth;
#[doc(hidden)]
pub mod fuzzing;
pub mod grpc;
pub mod http;
pub mod net;
pub mod resp;
pub mod telemetry;

mod announce;
mod failures;
mod keys;
mod plane;
mod reply;
pub mod run;
mod signals;
mod start;
mod upkeep;
pub mod violations;

pub use plane::with_password;
pub use reply::{Fields, Reply};
