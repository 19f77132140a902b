//! Servers as processes, measured side by side: what the questions about HTTP, RESP, gRPC and Redis have in common.

pub mod lineup;
pub mod peers;
pub mod prepare;
pub mod round;
pub mod server;
