//! The layer in front of real servers and routers, over an engine in the process.

mod bypass;
mod held;
mod passing;
mod sockets;
mod support;
